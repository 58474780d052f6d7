// Package request is how a user has tokens replaced before they are due: by an
// annotation on the pull secret that names a time, before which no token may have
// been issued.
//
// It owns the annotation. It requests no token.
//
// Its invariant: a request is met by one new token. The time follows from the token
// that is to be replaced, not from a clock, so that clocks which differ change
// nothing, and a request that is repeated is the same one.
package request
