// Package fingerprint names a token without keeping it: caches and logs hold
// its HMAC-SHA-256 under a key that only this process knows, as kube-apiserver's
// token cache does.
//
// Invariant: a fingerprint reveals nothing about the token, and is
// valid in this process alone.
package fingerprint
