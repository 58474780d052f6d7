package keytrust

import "slices"

// Support is how well a cluster's claim to a key is supported.
type Support int

// The kinds of support, weakest first.
const (
	// Served: an address that the configuration names serves the key. The party that
	// controls that address chooses what it serves.
	Served Support = iota
	// Proven: the cluster publishes the key and has proven that it signs with it.
	Proven
	// Named: the configuration has the key itself, or its id as a pin.
	Named
)

// Claim is the claim of one cluster to one key.
type Claim struct {
	Cluster string
	// Issuers are the issuers that the key would be trusted for.
	Issuers []string
	Support Support
}

// Refused reports whether c must not count under issuer because of others, the
// claims of all clusters to the same key:
//
//   - A key that the configuration names for one cluster is that cluster's. No
//     other source changes that.
//   - A key that nothing names and that two clusters claim counts for neither:
//     a token that it signed could be from either, and must never count as the
//     wrong one's.
//
// Two clusters with different issuers can be distinguished by those, so their
// claims collide only if the clusters have proven that both hold the key.
func (c Claim) Refused(issuer string, others []Claim) bool {
	return slices.ContainsFunc(others, func(o Claim) bool { return o.Cluster != c.Cluster && c.yields(issuer, o) })
}

func (c Claim) yields(issuer string, o Claim) bool {
	switch {
	case c.Support == Named:
		return o.Support == Named && slices.Contains(o.Issuers, issuer)
	case c.Support == Proven && o.Support != Served:
		return true
	default:
		return slices.Contains(o.Issuers, issuer)
	}
}
