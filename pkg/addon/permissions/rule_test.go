package permissions_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/permissions"
)

func TestParseRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]rbacv1.PolicyRule{
		"get,list:configmaps": {Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
		"update:deployments.apps/status:a,b": {
			Verbs: []string{"update"}, APIGroups: []string{"apps"}, Resources: []string{"deployments/status"}, ResourceNames: []string{"a", "b"},
		},
		"get:deployments.apps,statefulsets.apps": {Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets"}},
		"create:serviceaccounts/token:default": {
			Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"default"},
		},
	} {
		got, err := permissions.ParseRule(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "get", "get:", "get:a:b:c", "get,:configmaps", "get:configmaps,leases.coordination.k8s.io", "*:configmaps", "get:*.*", "create:configmaps:mine"} {
		if _, err := permissions.ParseRule(text); err == nil {
			t.Errorf("%q is accepted", text)
		} else if problem, ok := errors.AsType[*permissions.RuleError](err); !ok || problem.Text != text {
			t.Errorf("%q: %v is not about the rule", text, err)
		}
	}
}
