// Package review asks a managed cluster's API server about a subject token, for
// what no key set can show: a ServiceAccount, Pod or Secret that is gone.
//
// It owns the revocation ladder of a cluster (Never, Cached, Always) for tokens
// that package subject has verified, and the older way, in which a
// TokenReview is all the proof there is. It never decides what an identity may do.
//
// Invariant: a review that could not be made lets no request pass and blames no token:
// its reason is review_unavailable, never revoked.
package review
