package prune

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
)

// Kinds are the lists of the kinds that are looked at.
func Kinds() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.DeploymentList{},
		&rbacv1.RoleBindingList{},
		&rbacv1.RoleList{},
		&rbacv1.ClusterRoleBindingList{},
		&rbacv1.ClusterRoleList{},
		&corev1.ServiceAccountList{},
	}
}

// Prune deletes the objects of Kinds that label, a key with a value, marks as
// made for one resource and that wanted does not contain.
func Prune(ctx context.Context, c client.Client, label client.MatchingLabels, wanted apply.ChangeSet) error {
	for _, list := range Kinds() {
		if err := c.List(ctx, list, label); err != nil {
			return fmt.Errorf("list what was applied before: %w", err)
		}
		err := apimeta.EachListItem(list, func(item runtime.Object) error {
			obj, ok := item.(client.Object)
			if !ok || !obj.GetDeletionTimestamp().IsZero() || contains(c, wanted, obj) {
				return nil
			}
			return client.IgnoreNotFound(c.Delete(ctx, obj, client.Preconditions{UID: new(obj.GetUID())}))
		})
		if err != nil {
			return fmt.Errorf("delete what is no longer wanted: %w", err)
		}
	}
	return nil
}

func contains(c client.Client, wanted apply.ChangeSet, obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return true // Not a kind of ours, so not ours to delete.
	}
	return slices.ContainsFunc(wanted, func(change apply.Change) bool {
		ref := change.Object
		return ref.Kind.GroupKind() == gvk.GroupKind() && ref.Namespace == obj.GetNamespace() && ref.Name == obj.GetName()
	})
}
