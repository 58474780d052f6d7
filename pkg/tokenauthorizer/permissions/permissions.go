package permissions

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// Complete returns known with the namespaces and the clusters of the hub, unless known has
// some.
func Complete(ctx context.Context, hub client.Reader, known policy.Known) (policy.Known, error) {
	if known.Namespaces == nil {
		var list corev1.NamespaceList
		if err := hub.List(ctx, &list); err != nil {
			return known, fmt.Errorf("namespaces of the hub: %w", err)
		}
		for i := range list.Items {
			known.Namespaces = append(known.Namespaces, list.Items[i].Name)
		}
	}
	if known.Clusters == nil {
		var list clusterv1.ManagedClusterList
		if err := hub.List(ctx, &list); err != nil {
			return known, fmt.Errorf("managed clusters: %w", err)
		}
		for i := range list.Items {
			known.Clusters = append(known.Clusters, list.Items[i].Name)
		}
	}
	return known, nil
}

// Orphaned returns the namespaces of the hub that have permissions of rules that no
// longer exist.
func Orphaned(ctx context.Context, hub client.Reader, needed policy.Permissions) ([]string, error) {
	var list rbacv1.RoleList
	if err := hub.List(ctx, &list, client.MatchingFields{"metadata.name": policy.RoleName}); err != nil {
		return nil, fmt.Errorf("permissions that are there: %w", err)
	}
	var out []string
	for i := range list.Items {
		namespace := list.Items[i].Namespace
		if !slices.ContainsFunc(needed.Roles, func(r rbacv1.Role) bool { return r.Namespace == namespace }) {
			out = append(out, namespace)
		}
	}
	return out, nil
}
