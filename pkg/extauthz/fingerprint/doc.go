// Package fingerprint names a token without keeping it: caches and logs hold
// its HMAC-SHA-256 under a key that only this process knows, as kube-apiserver's
// token cache does.
//
// Invariant: a fingerprint tells nothing about the token to anybody, and is
// good for this process alone.
package fingerprint
