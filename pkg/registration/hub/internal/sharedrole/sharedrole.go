package sharedrole

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/rbac"
)

// Owner is the field manager of the shared ClusterRoles.
const Owner client.FieldOwner = "ocm.clusterrole"

// Ensure creates or repairs the shared ClusterRoles.
func Ensure(ctx context.Context, c client.Client, labels map[string]string) error {
	for _, name := range names.SharedClusterRoles() {
		want := rbac.Role{Name: name, Labels: rbac.Labels("", labels), Rules: rules(name)}
		if err := rbac.EnsureClusterRole(ctx, c, Owner, want); err != nil {
			return err
		}
	}
	return nil
}

// Remove deletes the shared ClusterRoles.
func Remove(ctx context.Context, c client.Client) error {
	for _, name := range names.SharedClusterRoles() {
		var role rbacv1.ClusterRole
		err := c.Get(ctx, client.ObjectKey{Name: name}, &role)
		if err == nil {
			err = c.Delete(ctx, &role)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cluster role %s: %w", name, err)
		}
	}
	return nil
}

// rules returns the rules of a shared ClusterRole.
// See docs/reference/wire-contract.md#shared-roles.
func rules(name string) []rbacv1.PolicyRule {
	if name == names.ClusterRoleWork {
		return []rbacv1.PolicyRule{
			rbac.Rule(corev1.GroupName, "events", "create", "patch", "update"),
			rbac.Rule(eventsv1.GroupName, "events", "create", "patch", "update"),
			rbac.Rule(workv1.GroupVersion.Group, "manifestworks", "get", "list", "watch", "update", "patch"),
			rbac.Rule(workv1.GroupVersion.Group, "manifestworks/status", "patch", "update"),
		}
	}
	return []rbacv1.PolicyRule{
		rbac.Rule(coordinationv1.GroupName, "leases", "get", "list", "watch", "update"),
		rbac.Rule(addonv1beta1.GroupVersion.Group, "managedclusteraddons", "get", "list", "watch"),
		rbac.Rule(addonv1beta1.GroupVersion.Group, "managedclusteraddons/status", "patch", "update"),
		rbac.Rule(eventsv1.GroupName, "events", "create"),
		// The agent publishes the issuer and the keys of the cluster's tokens in
		// this ConfigMap. Server-side apply needs "create" by name.
		rbac.Named(rbac.Rule(corev1.GroupName, "configmaps", "get", "list", "watch", "create", "patch", "delete"), names.IssuerConfigMap),
	}
}
