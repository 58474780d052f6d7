// Package issuers shows commands which token issuers the hub knows: what the
// clusters' agents publish, what the hub says of it, and what the token
// authorizer's configuration adds.
//
// It only reads. It reports what the hub's controllers and the configuration say
// and never decides which issuer to trust.
package issuers
