// Package tokenauthorizer is the token authorizer as a role: it takes a workload's
// token of a managed cluster and gives the request a token of the hub, for a
// proxy in front of the hub's API.
//
// It owns how the parts below it are put together, how a configuration comes in
// and replaces another while requests continue, and what the role reports about
// itself: readiness, metrics and /clusters. Each part's rules are its own: keys
// in jwks, tokens in subject and review, rules in policy, minting in mint,
// their order in authorizer, protocols in server.
//
// Invariant: a configuration is taken over whole or not at all. A file that cannot
// be used leaves the last good one in force, and is reported until it is fixed. An
// object of the hub that cannot be used denies everything to its cluster and is
// reported in its conditions.
package tokenauthorizer
