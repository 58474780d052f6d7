// Package tokens holds the end-to-end tests of the token authorizer that need
// more of its surroundings than the other suite can give: API servers that
// change their keys or stop, a provider of keys that is slow, authorizers that
// are killed. The authorizer is the real binary with the rights of the
// manifests, the clusters are real control planes, every token is minted by an
// API server, and between workload and hub stands a proxy that speaks Envoy's
// protocol.
//
// TestCoverage says which test covers which line of tokensmith's design.
package tokens
