// Package jwk reads JSON Web Key Sets (RFC 7517 §5) and the tokens that their keys
// sign (RFC 7515 §7.1), and verifies signatures.
//
// It wraps go-jose and owns what a key must be to be trusted: a public RSA key of
// at least 2048 bits or an EC key on P-256, P-384 or P-521, with an id, meant for
// verifying signatures. It fetches nothing, follows no URL inside a key or a token,
// and looks at no certificate.
//
// Invariant: a Key verifies only with an algorithm that fits its type, its
// curve and the "alg" it came with, so that a token cannot choose how it is
// checked (RFC 8725 §3.1).
package jwk
