package manifests_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestNoRoleIsTooWide keeps wildcards and the verbs that lead around RBAC out of
// every role. That operators hold what they grant is shown by their tests, which
// run with these roles.
func TestNoRoleIsTooWide(t *testing.T) {
	t.Parallel()
	roles := 0
	for name, render := range golden() {
		objs, err := render()
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range objs {
			if obj.GroupVersionKind().Group != rbacv1.GroupName || (obj.GetKind() != "Role" && obj.GetKind() != "ClusterRole") {
				continue
			}
			roles++
			var role rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
					if slices.Contains([]string{"*", "escalate", "bind", "impersonate", "deletecollection"}, word) {
						t.Errorf("%s: %s %s grants %q: %v", name, obj.GetKind(), role.Name, word, rule)
					}
				}
			}
		}
	}
	if roles < 8 {
		t.Errorf("only %d roles were looked at", roles)
	}
}
