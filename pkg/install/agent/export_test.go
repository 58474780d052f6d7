package agent

import (
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
)

// The pure parts, for the tests of this package.

// Over returns the Klusterlet over a live one.
func (k Values) Over(live *operatorv1.Klusterlet) *operatorv1.Klusterlet { return k.klusterlet(live) }

// Check judges facts about a managed cluster.
func Check(f install.Facts, k Values, onHub *clusterv1.ManagedCluster) []install.Finding {
	return append(checkKlusterlet(f, k), checkName(f, k, onHub)...)
}
