// Package subject answers who presents a token: it takes a subject token (RFC
// 8693 §1.1) and returns the identity it proves, or a denial.Error.
//
// It owns the order of the checks and the shape of an identity, the same
// whether keys or a TokenReview proved it. It never fetches keys, never decides
// what an identity may do and never talks to a cluster.
//
// Invariant: the cluster of an Identity is the one whose key verified the
// signature, never anything that the token or the request says.
package subject
