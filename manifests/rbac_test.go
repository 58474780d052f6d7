package manifests_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// workAdmin is the end of the renderings with OCM's default permissions of the work
// agent, which include everything; wideRoles are the roles that have them then.
const workAdmin = "-work-admin"

func wideRoles() []string {
	return []string{"klusterlet", "open-cluster-management:klusterlet-work:agent", "open-cluster-management:klusterlet-work:execution"}
}

// TestNoRoleIsTooWide keeps wildcards and the verbs that lead around RBAC out of
// every role. That operators hold what they grant is shown by their tests, which
// run with these roles.
func TestNoRoleIsTooWide(t *testing.T) {
	t.Parallel()
	roles, wide := 0, map[string]bool{}
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
				for _, word := range tooWide(rule) {
					if strings.HasSuffix(name, workAdmin) && slices.Contains(wideRoles(), role.Name) {
						wide[role.Name] = true
						continue
					}
					t.Errorf("%s: %s %s grants %q: %v", name, obj.GetKind(), role.Name, word, rule)
				}
			}
		}
	}
	if roles < 8 || len(wide) != len(wideRoles()) {
		t.Errorf("only %d roles were looked at, and those that are wide on request are %v", roles, wide)
	}
}

// tooWide returns the words of a rule that no role may have. To bind one named
// ClusterRole is not wide.
func tooWide(rule rbacv1.PolicyRule) []string {
	return slices.DeleteFunc(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), func(word string) bool {
		if word == "bind" && len(rule.ResourceNames) > 0 {
			return true
		}
		return !slices.Contains([]string{"*", "escalate", "bind", "impersonate", "deletecollection"}, word)
	})
}
