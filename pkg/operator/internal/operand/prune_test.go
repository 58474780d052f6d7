package operand_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

// TestPruneDistinguishesObjects: what goes is what is not wanted by kind,
// namespace and name together, and carries the label and the field manager's mark.
func TestPruneDistinguishesObjects(t *testing.T) {
	t.Parallel()
	const label = "test.example/owner"
	meta := func(owner, namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{label: owner},
			Annotations: map[string]string{apply.HashAnnotationPrefix + "test": "hash"},
		}
	}
	unmarked := meta("us", "here", "unmarked")
	unmarked.Annotations = nil
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		&rbacv1.Role{ObjectMeta: meta("us", "here", "agent")},
		&rbacv1.Role{ObjectMeta: meta("us", "there", "agent")},
		&rbacv1.Role{ObjectMeta: meta("us", "here", "old")},
		&rbacv1.Role{ObjectMeta: unmarked},
		&rbacv1.Role{ObjectMeta: meta("them", "there", "old")},
		&rbacv1.RoleBinding{ObjectMeta: meta("us", "here", "agent")},
	).Build()
	owned := operand.Owned{
		Client: c, Label: client.MatchingLabels{label: "us"}, FieldManager: "test",
		Kinds: []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}},
	}
	wanted := apply.ChangeSet{{Object: apply.Ref{Kind: rbacv1.SchemeGroupVersion.WithKind("Role"), Namespace: "here", Name: "agent"}}}
	if err := owned.Prune(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		switch list := list.(type) {
		case *rbacv1.RoleList:
			for i := range list.Items {
				left = append(left, "role "+list.Items[i].Namespace+"/"+list.Items[i].Name)
			}
		case *rbacv1.RoleBindingList:
			for i := range list.Items {
				left = append(left, "binding "+list.Items[i].Namespace+"/"+list.Items[i].Name)
			}
		}
	}
	slices.Sort(left)
	if diff := cmp.Diff([]string{"role here/agent", "role here/unmarked", "role there/old"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}
