// Package verdict is the vocabulary in which the token authorizer refuses: a
// closed list of stable reasons, what each means to whoever asked, and the
// error that carries one.
//
// It owns the reasons and nothing that finds them. Metrics, audit lines, HTTP
// and gRPC answers and `kubectl ocm exchange explain` all use these words, so
// that a user who meets one finds it in docs/reference/token-authorizer.md.
package verdict
