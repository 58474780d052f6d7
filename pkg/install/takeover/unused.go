package takeover

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
)

// removable are the kinds of what only OCM's components used, in the order of
// deletion. They hold no data of users.
func removable() []client.ObjectList {
	return []client.ObjectList{
		&corev1.ServiceList{}, &networkingv1.NetworkPolicyList{},
		&rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.RoleList{},
		&corev1.ServiceAccountList{},
	}
}

// certificates are the Secrets that OCM's webhooks and the debug server of placements served
// with and ours do not use.
// See docs/reference/wire-contract.md#webhook-certificates.
func certificates() []string {
	return []string{"registration-webhook-serving-cert", "work-webhook-serving-cert", "placement-debug-serving-cert"}
}

// unused returns what OCM's operator applied and ours did not. Before ours has run,
// that is all of it.
func (s *Survey) unused(ctx context.Context, reader client.Reader) ([]client.Object, error) {
	left, err := s.orphans(ctx, reader)
	if err != nil {
		return nil, err
	}
	for _, kind := range removable() {
		if err := reader.List(ctx, kind, client.MatchingLabels{s.side.label: s.side.name}); err != nil {
			return nil, fmt.Errorf("what OCM's operator applied: %w", err)
		}
		_ = apimeta.EachListItem(kind, func(item runtime.Object) error {
			if obj, ok := item.(client.Object); ok && !apply.AppliedBy(obj, s.side.manager) {
				left = append(left, obj)
			}
			return nil
		})
	}
	for _, name := range certificates() {
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := reader.Get(ctx, client.ObjectKey{Namespace: s.side.namespace, Name: name}, secret)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("secret %s: %w", name, err)
		}
		if err == nil {
			left = append(left, secret)
		}
	}
	return left, nil
}
