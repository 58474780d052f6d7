package jwks

// View is the knowledge of a Store at one moment. It never changes.
type View struct {
	store *Store
	// tables are a copy of those of the index.
	tables
	// pending is set while what clusters publish on the hub is not known yet.
	pending bool
	// replaced is closed when a newer View is current.
	replaced chan struct{}
}

// Generation returns that of a cluster, 0 for one that has no keys. It moves
// whenever a key of the cluster no longer counts; those of other clusters stay.
// What was verified under one generation of a cluster must be verified again
// under another, and what was verified for a cluster without one does not count.
func (v *View) Generation(cluster string) uint64 { return v.generations.get(path{cluster}) }

// find returns the keys that issuer has under the id kid.
func (v *View) find(issuer, kid string) []Key { return v.keys.get(path{kid, issuer}) }

// knows says whether a cluster has the issuer.
func (v *View) knows(issuer string) bool {
	for range v.clusters.under(issuer) {
		return true
	}
	return false
}

// only returns the cluster that has the issuer, if it is the only one.
func (v *View) only(issuer string) (string, bool) {
	var names []string
	for p := range v.clusters.under(issuer) {
		if names = append(names, p[1]); len(names) > 1 {
			return "", false
		}
	}
	if len(names) == 0 {
		return "", false
	}
	return names[0], true
}

// ambiguous returns why a key is refused that stands for several clusters, or nil.
func (v *View) ambiguous(issuer, kid string) *SharedKeyError {
	for p, shared := range v.shared.under(kid) {
		if p[1] == issuer {
			return shared
		}
	}
	return nil
}

// keyless returns a cluster with the issuer whose source has given no keys yet,
// or not for too long; empty if there is none.
func (v *View) keyless(issuer string) string {
	for p := range v.empty.under(issuer) {
		return p[1]
	}
	return ""
}
