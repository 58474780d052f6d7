// Package tokenauthorizer is the token authorizer as a role: it accepts a workload's
// token of a managed cluster and adds a token of the hub to the request, for a proxy in
// front of the hub's API.
//
// It owns the composition of the parts below it, the replacement of a configuration
// while requests continue, and the role's reports about itself: readiness, metrics and
// /clusters. Each part's rules are its own: keys in jwks, tokens in subject and review,
// rules in policy, minting in mint, their order in authorizer, protocols in server.
//
// Invariant: a configuration is adopted completely or not at all. A file that cannot be
// used leaves the last good one in force, and is reported until it is fixed. An object
// of the hub that cannot be used denies everything to its cluster and is reported in
// its conditions.
package tokenauthorizer
