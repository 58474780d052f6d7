// Package jwk reads JSON Web Key Sets (RFC 7517 §5) strictly and verifies
// signatures with the keys in them.
//
// It owns what a key must be to be believed: a public RSA key of at least 2048
// bits or an EC key on P-256, P-384 or P-521, with an id, meant for verifying
// signatures. It fetches nothing, follows no URL inside a key, and looks at no
// certificate.
//
// Invariant: a Key verifies only with an algorithm that fits its type, its
// curve and the "alg" it came with, so that a token cannot choose how it is
// checked (RFC 8725 §3.1).
package jwk
