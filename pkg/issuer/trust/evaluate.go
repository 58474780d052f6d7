package trust

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// evaluate returns the condition that a cluster should have, nil for none.
func (r *reconciler) evaluate(ctx context.Context, cluster *clusterv1.ManagedCluster, m *corev1.ConfigMap) (*metav1.Condition, error) {
	self, live := keytrust.ClusterOf(cluster), condition(cluster)
	switch denied := self.Denied(); {
	case denied.Reason != "" && (m != nil || live != nil):
		return untrusted(denied.Reason, denied.Message+", and the keys it published were deleted"), nil
	case m == nil:
		return nil, nil
	case !self.Joined:
		return live, nil // Its agent says so in a moment; nothing counts before.
	}
	var failed error
	decision := keytrust.Decide(keytrust.Candidate{Cluster: self, Data: m.Data}, func(thumbprint string) []keytrust.Candidate {
		holders, err := r.holders(ctx, thumbprint)
		if err != nil {
			failed = err
		}
		return holders
	})
	if failed != nil {
		return nil, failed
	}
	if !decision.Trusted() {
		return untrusted(decision.Rejection.Reason, decision.Message), nil
	}
	return &metav1.Condition{
		Type: names.ConditionIssuerTrusted, Status: metav1.ConditionTrue, Reason: names.ReasonKeysTrusted, Message: decision.Message,
	}, nil
}

func untrusted(reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: names.ConditionIssuerTrusted, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// holders returns the clusters that publish a key.
func (r *reconciler) holders(ctx context.Context, thumbprint string) ([]keytrust.Candidate, error) {
	maps, err := r.publishing(ctx, thumbprint)
	if err != nil {
		return nil, err
	}
	holders := make([]keytrust.Candidate, 0, len(maps))
	for i := range maps {
		var cluster clusterv1.ManagedCluster
		err := r.client.Get(ctx, client.ObjectKey{Name: maps[i].Namespace}, &cluster, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get managed cluster %s: %w", maps[i].Namespace, err)
		}
		if err == nil { // A namespace of no cluster claims nothing.
			holders = append(holders, keytrust.Candidate{Cluster: keytrust.ClusterOf(&cluster), Data: maps[i].Data})
		}
	}
	return holders, nil
}

// publishing returns the ConfigMaps with a key. They must not be changed.
func (r *reconciler) publishing(ctx context.Context, thumbprint string) ([]corev1.ConfigMap, error) {
	var list corev1.ConfigMapList
	if err := r.client.List(ctx, &list, client.MatchingFields{byThumbprint: thumbprint}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the clusters that publish a key: %w", err)
	}
	return list.Items, nil
}
