package status

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// resources are sums over the nodes.
type resources struct {
	capacity    clusterv1.ResourceList
	allocatable clusterv1.ResourceList
}

func sum(nodes []corev1.Node) resources {
	r := resources{capacity: clusterv1.ResourceList{}, allocatable: clusterv1.ResourceList{}}
	for i := range nodes {
		add(r.capacity, nodes[i].Status.Capacity)
		if !nodes[i].Spec.Unschedulable {
			add(r.allocatable, nodes[i].Status.Allocatable)
		}
	}
	return r
}

func add(total clusterv1.ResourceList, list corev1.ResourceList) {
	for name, quantity := range list {
		already := total[clusterv1.ResourceName(name)]
		already.Add(quantity)
		total[clusterv1.ResourceName(name)] = already
	}
}

// apply retains capacities that nodes do not have: other writers may report them.
func (r resources) apply(status *clusterv1.ManagedClusterStatus) {
	capacity := maps.Clone(status.Capacity)
	if capacity == nil {
		capacity = clusterv1.ResourceList{}
	}
	maps.Copy(capacity, r.capacity)
	// Equal quantities can have different forms; the stored form is retained.
	if len(capacity) > 0 && !apiequality.Semantic.DeepEqual(capacity, status.Capacity) {
		status.Capacity = capacity
	}
	if !apiequality.Semantic.DeepEqual(r.allocatable, status.Allocatable) && len(r.allocatable)+len(status.Allocatable) > 0 {
		status.Allocatable = r.allocatable
	}
}
