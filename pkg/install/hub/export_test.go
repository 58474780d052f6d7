package hub

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
)

// The pure parts, for the tests of this package.

// ObjectsOver returns what a hub would consist of over a live one.
func (h Values) ObjectsOver(cm *operatorv1.ClusterManager, info bootstrap.ClusterInfo) ([]client.Object, error) {
	return h.objects(retained{manager: cm}, info)
}

// Objects returns what Init would apply over what is there.
func (r Runner) Objects(ctx context.Context, h Values, info bootstrap.ClusterInfo) ([]client.Object, error) {
	p, err := r.prepare(ctx, h, info)
	return p.Objects, err
}

// Over returns the ClusterManager over a live one.
func (h Values) Over(live *operatorv1.ClusterManager) *operatorv1.ClusterManager {
	return h.clusterManager(live)
}

// Check judges facts about a hub that is to be installed or changed.
func Check(f install.Facts, h Values) []install.Finding { return checkHub(f, h) }
