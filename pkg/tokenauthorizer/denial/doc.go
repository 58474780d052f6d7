// Package denial is the vocabulary in which the token authorizer denies: a
// closed list of stable reasons, what each means to the caller, and the
// error that carries one.
//
// It owns the reasons and nothing that finds them. Metrics, audit lines, HTTP
// and gRPC answers and `kubectl ocm exchange explain` all use these words, so
// that a user who meets one finds it in docs/reference/token-authorizer.md.
package denial
