// Package jwks keeps the public keys of the managed clusters' token issuers: for an
// issuer and a key id it returns the keys that may have signed a token, and their
// clusters.
//
// It owns the sources of keys (the configuration, a file, an https endpoint, OIDC
// discovery, or the publication of a cluster's agent on the hub), their refresh, and
// the end of their trust. It reads no tokens and makes no decision about an identity.
//
// Two clusters may have one and the same issuer (kubeadm, kind and k3s all
// default to the same string): the index has all keys of an issuer and a key id, and
// the one that verifies names the cluster.
//
// Lookups of known keys read one immutable View, without locks. Everything else changes
// the index under one lock and replaces the View. Views share unchanged parts, so that
// the cost of a change does not depend on the size of the fleet. A caller that
// configures the clusters gets each View before it takes effect, so that keys and rules
// change in one step.
//
// Package keytrust decides about keys that several clusters claim, and which of the
// published keys are proven.
//
// Invariants: no key is trusted for a cluster that the hub denies. A key of two
// clusters is trusted for neither. A failed refresh of a source, an empty set and one
// that cannot be parsed never replace a good set, which ends only when its source drops
// it or when it is older than StaleFor. The removal of a key changes the generation of
// its cluster, and of no other, in the same instant.
package jwks
