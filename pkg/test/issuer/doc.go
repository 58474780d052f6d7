// Package issuer gives tests the keys and tokens of a token issuer: keys of
// every kind that is trusted, their key set, tokens with any header and any
// claims, and an https provider that serves discovery and keys and can be made
// slow, broken or dishonest.
//
//	key := issuer.NewKey(t, "ES256")
//	token := key.Token(t, issuer.BoundClaims("https://issuer", "app", "eso", time.Now()))
//	set := issuer.JWKS(t, key)
//
// Positive tests of whole paths take tokens from a real API server instead (see
// package controlplane); made-up ones are for what an API server never mints.
package issuer
