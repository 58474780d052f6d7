// Package servingcert issues and rotates the certificates of the hub's TLS servers,
// the conversion webhook and the token authorizer: a CA in a Secret, a serving
// certificate in another, and a ConfigMap with the bundle of the trusted CAs. It also
// holds the certificate in the process that serves.
//
// Rules decides what to issue, without I/O; Reconciler reads and writes; Holder
// serves. Only the issuer and the server read a private key, and no key is written to
// a file.
//
// Its invariant: a certificate is served only after its CA is in the bundle of every
// client, and a CA leaves the bundle only after every certificate that it signed has
// expired. So rotation breaks no connection, in any order clients see it.
package servingcert
