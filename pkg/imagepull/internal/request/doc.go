// Package request reads and writes the annotation on a pull secret with which users
// request new tokens before the renewal is due: tokens issued before its time are
// replaced.
//
// It owns the annotation. It requests no token.
//
// Its invariant: one new token satisfies a request. The time is derived from the token
// that is replaced, not from a clock, so that clock skew does not matter and a repeated
// request is the same one.
//
// The package is tested in pkg/imagepull.
package request
