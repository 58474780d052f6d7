package trust

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// judge returns the condition that a cluster should have, nil for none.
func (r *reconciler) judge(ctx context.Context, cluster *clusterv1.ManagedCluster, m *corev1.ConfigMap) (*metav1.Condition, error) {
	live := condition(cluster)
	switch {
	case !cluster.Spec.HubAcceptsClient && (m != nil || live != nil):
		return refused(names.ReasonClusterNotAccepted, "The hub does not accept this cluster: its tokens are not believed, and the keys it published were deleted"), nil
	case m == nil:
		return nil, nil
	case !joined(cluster):
		return live, nil // Its agent says so in a moment; nothing is believed before.
	}
	published, err := Parse(m)
	if err != nil {
		return refused(names.ReasonKeysInvalid, "What the cluster published cannot be used: %v", err), nil
	}
	others, key, err := r.sharing(ctx, cluster.Name, published.Keys)
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		return refused(names.ReasonKeysShared, "Key %s is also published by %s, so tokens that it signed are believed of neither: give one of the clusters a signing key of its own",
			key, strings.Join(others, ", ")), nil
	}
	return &metav1.Condition{
		Type: names.ConditionIssuerTrusted, Status: metav1.ConditionTrue, Reason: names.ReasonKeysTrusted,
		Message: fmt.Sprintf("Tokens of issuer %s signed with %s are this cluster's", published.Issuer, keyIDs(published.Keys)),
	}, nil
}

func refused(reason, format string, args ...any) *metav1.Condition {
	return &metav1.Condition{
		Type: names.ConditionIssuerTrusted, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

// sharing returns the first key that others publish as well, and who.
func (r *reconciler) sharing(ctx context.Context, name string, keys []jwk.Key) (others []string, keyID string, err error) {
	for _, key := range keys {
		holders, err := r.holders(ctx, key.Thumbprint)
		if err != nil {
			return nil, "", err
		}
		for _, holder := range holders {
			counts, err := r.counts(ctx, holder)
			if err != nil {
				return nil, "", err
			}
			if counts && holder != name {
				others = append(others, holder)
			}
		}
		if len(others) > 0 {
			slices.Sort(others)
			return slices.Compact(others), key.ID, nil
		}
	}
	return nil, "", nil
}

// counts reports whether a namespace is that of a cluster that the hub accepts:
// what lies elsewhere under the same name is nobody's claim.
func (r *reconciler) counts(ctx context.Context, name string) (bool, error) {
	var cluster clusterv1.ManagedCluster
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return cluster.Spec.HubAcceptsClient && cluster.DeletionTimestamp.IsZero(), nil
}

// holders returns the namespaces in which a key is published.
func (r *reconciler) holders(ctx context.Context, thumbprint string) ([]string, error) {
	var list corev1.ConfigMapList
	if err := r.client.List(ctx, &list, client.MatchingFields{byThumbprint: thumbprint}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("look for who publishes a key: %w", err)
	}
	holders := make([]string, len(list.Items))
	for i := range list.Items {
		holders[i] = list.Items[i].Namespace
	}
	return holders, nil
}

func keyIDs(keys []jwk.Key) string {
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i] = key.ID
	}
	return strings.Join(ids, ", ")
}
