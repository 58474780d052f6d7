package install

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
)

// The pure parts, for the tests of this package.

// ObjectsOver returns what a hub would consist of over a live one.
func (h Hub) ObjectsOver(cm *operatorv1.ClusterManager, info bootstrap.ClusterInfo) ([]client.Object, error) {
	return h.objects(live{manager: cm}, info)
}

// HubObjects returns what Init would apply over what is there.
func (r *Runner) HubObjects(ctx context.Context, h Hub, info bootstrap.ClusterInfo) ([]client.Object, error) {
	p, err := r.prepareHub(ctx, h, info)
	return p.objs, err
}

// Over returns the Klusterlet over a live one.
func (k Klusterlet) Over(live *operatorv1.Klusterlet) *operatorv1.Klusterlet {
	return k.klusterlet(live)
}

// Over returns the ClusterManager over a live one.
func (h Hub) Over(live *operatorv1.ClusterManager) *operatorv1.ClusterManager {
	return h.clusterManager(live)
}

// ImageOver returns the image over a live one.
func (w Workload) ImageOver(live string) string { return w.image(live) }

// CheckHub judges facts about a hub of which nothing is wanted.
// that is changed.
func CheckHub(f Facts) []Finding { return checkHub(f, Hub{}) }

// CheckChange judges facts about a hub that is to be changed.
func CheckChange(f Facts, h Hub) []Finding { return checkHub(f, h) }

// CheckKlusterlet judges facts about a managed cluster.
func CheckKlusterlet(f Facts, k Klusterlet, onHub *clusterv1.ManagedCluster) []Finding {
	return append(checkKlusterlet(f, k), checkName(f, k, onHub)...)
}

// Sift separates warnings from what is fatal.
func Sift(findings []Finding, skip ...string) ([]Finding, error) { return sift(findings, skip) }

// GivesUp reports whether a wait ends when a Pod reports these reasons one after the other.
func GivesUp(pods ...*corev1.Pod) bool {
	var p pulls
	for _, pod := range pods {
		p = p.next(pod)
	}
	return p.failed >= enoughPulls
}
