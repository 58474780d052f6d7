// Package audit writes down what the token authorizer decided: one JSON object
// per line, so that the hub's own audit log ("credential-id") can be followed
// back to the workload that stands behind a ServiceAccount.
//
// It owns the shape of a line (Line), what is left out (all but a sample of the
// requests that a cached token answers) and that no request waits for the disk: lines
// beyond the buffer are dropped and counted.
//
// Invariant: no token, no part of one and no query string is ever written.
package audit
