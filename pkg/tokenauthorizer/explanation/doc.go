// Package explanation owns how the evaluation of a token is explained: it takes a token
// through the token authorizer's own chain, and records each step and the decision.
//
// The chain decides. The package sends no token anywhere, and makes no exchange unless its
// caller passes one.
package explanation
