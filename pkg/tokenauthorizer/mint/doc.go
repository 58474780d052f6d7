// Package mint turns a granted identity into a token of the hub: one
// TokenRequest per identity, target and life, kept until it is due for renewal.
//
// It owns the cache of issued tokens, their renewal and the limits on minting.
// It never decides whether an identity may have a token.
//
// Invariant: a token is handed out only to the very identity, target and
// generation of rules that it was minted for.
package mint
