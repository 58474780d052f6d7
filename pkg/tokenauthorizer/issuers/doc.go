// Package issuers owns what a hub knows about the token issuers of clusters: the keys that
// their agents publish, whether the hub trusts them, and what the token authorizer's
// configuration adds.
//
// It only reads and prints nothing. It reports what the hub's controllers and the
// configuration say and never decides which issuer to trust.
package issuers
