package operand

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	single          = 1
	highlyAvailable = 3
)

// Replicas is how replicas are counted.
type Replicas struct {
	// Fixed is the number of replicas; 0 counts control plane nodes instead.
	Fixed int32
	// ControlPlane selects the control plane nodes.
	ControlPlane labels.Selector
	// Nodes reads nodes. Do not read them through a cache: a cache of all nodes costs
	// far more than the few reads.
	Nodes client.Reader
}

// Count returns the number of replicas: the fixed one, else three when the
// cluster has more than one control plane node or they cannot be listed, else one.
// See docs/reference/wire-contract.md#replicas.
func (r Replicas) Count(ctx context.Context) int32 {
	if r.Fixed > 0 {
		return r.Fixed
	}
	var nodes metav1.PartialObjectMetadataList
	nodes.SetGroupVersionKind(nodeList())
	err := r.Nodes.List(ctx, &nodes, client.MatchingLabelsSelector{Selector: r.ControlPlane}, client.Limit(2))
	if err != nil || len(nodes.Items) > 1 {
		return highlyAvailable
	}
	return single
}

func nodeList() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("NodeList") }
