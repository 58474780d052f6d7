package status

import (
	"cmp"
	"slices"
	"strings"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ClaimRules select the claims that are reported.
type ClaimRules struct {
	// MaxCustom is how many claims that are not reserved are reported.
	MaxCustom int
	// ReservedSuffixes are name suffixes of reserved claims, in addition to OCM's
	// reserved names.
	ReservedSuffixes []string
}

// Select returns the reported claims: every reserved one, and the first MaxCustom of
// the others by name. The result is never nil.
func (r ClaimRules) Select(claims []clusterv1alpha1.ClusterClaim) []clusterv1.ManagedClusterClaim {
	reserved := []clusterv1.ManagedClusterClaim{}
	var custom []clusterv1.ManagedClusterClaim
	for i := range claims {
		c := &claims[i]
		if _, local := c.Labels[names.LabelSpokeOnly]; local || c.Spec.Value == "" {
			continue
		}
		claim := clusterv1.ManagedClusterClaim{Name: c.Name, Value: c.Spec.Value}
		if r.reserved(c.Name) {
			reserved = append(reserved, claim)
		} else {
			custom = append(custom, claim)
		}
	}
	byName := func(a, b clusterv1.ManagedClusterClaim) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(reserved, byName)
	slices.SortFunc(custom, byName)
	return append(reserved, custom[:min(len(custom), r.MaxCustom)]...)
}

func (r ClaimRules) reserved(name string) bool {
	return slices.Contains(clusterv1alpha1.ReservedClusterClaimNames[:], name) ||
		slices.ContainsFunc(r.ReservedSuffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}
