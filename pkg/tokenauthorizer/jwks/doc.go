// Package jwks keeps the public keys of the managed clusters' token issuers:
// for an issuer and a key id it answers which keys may have signed a token and
// whose they are.
//
// It owns where keys come from (the configuration, a file, an https endpoint,
// OIDC discovery, or what a cluster's agent publishes on the hub), how they are
// refreshed, and when they are no longer trusted. It reads no tokens and makes
// no decision about an identity.
//
// Two clusters may have one and the same issuer (kubeadm, kind and k3s all
// default to the same string): the index has all keys of an issuer and a key id, and
// the one that verifies names the cluster.
//
// Lookups of known keys read one immutable View, without locks. Everything else
// changes the index under one lock and replaces the View. Views share what does not
// change, so that a change costs what it concerns, in a fleet of any size. A caller
// that configures the clusters gets each View before it counts, so that keys and
// rules change in one step.
//
// Whose a key is when several clusters claim it, and which of the published keys
// are proven, package keytrust decides.
//
// Invariants: no key counts for a cluster that the hub denies. A key that stands
// for two clusters stands for neither. A failed refresh of a source, an empty set
// and one that cannot be parsed never replace a good set, which ends only when
// its source drops it or when it is older than StaleFor. A key that goes moves
// the generation of its cluster, and of no other, in the same instant.
package jwks
