// Package published informs a jwks.Store which clusters the hub has and what they
// publish.
//
// It reads and never writes, and decides nothing: whose keys count is up to
// package keytrust, which the store calls.
//
// Invariant: the namespace of a ConfigMap, never its data, says whose keys it
// holds.
package published
