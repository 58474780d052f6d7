// Package published brings the keys that managed clusters publish on the hub
// into a jwks.Store.
//
// It owns who is believed: a cluster whose ManagedCluster the hub accepts and
// that has joined, for as long as that is so. What the keys are worth the store
// decides. It reads and never writes.
//
// Invariant: the namespace of a ConfigMap, never its data, says whose keys it
// holds.
package published
