package permissions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/permissions"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

func role(namespace, name string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "builds"}},
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
	).Build()
	for name, tc := range map[string]struct{ known, want policy.Known }{
		"what exists":      {policy.Known{}, policy.Known{Namespaces: []string{"builds"}, Clusters: []string{"c1"}}},
		"given namespaces": {policy.Known{Namespaces: []string{"n"}}, policy.Known{Namespaces: []string{"n"}, Clusters: []string{"c1"}}},
		"given clusters":   {policy.Known{Clusters: []string{"c2"}}, policy.Known{Namespaces: []string{"builds"}, Clusters: []string{"c2"}}},
	} {
		got, err := permissions.Complete(t.Context(), hub, tc.known)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOrphaned(t *testing.T) {
	t.Parallel()
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).
		WithIndex(&rbacv1.Role{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithObjects(role("needed", policy.RoleName), role("gone", policy.RoleName), role("other", "another-role")).Build()
	got, err := permissions.Orphaned(t.Context(), hub, policy.Permissions{Roles: []rbacv1.Role{*role("needed", policy.RoleName)}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gone"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
