// Package issuer is the "issuer" command: it shows and edits which token issuers
// the hub trusts, has managed clusters publish theirs, and exports what the hub
// knows as the configuration of an API server.
//
// It never decides which issuers are trusted, and nothing it prints is secret: keys are
// the public halves.
package issuer
