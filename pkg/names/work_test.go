package names_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func TestParseWorkPermissions(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		role  string
		admin bool
	}{
		"":                 {role: "admin", admin: true},
		"admin":            {role: "admin", admin: true},
		"view":             {role: "view"},
		"none":             {},
		"team:deployer.v1": {role: "team:deployer.v1"},
	} {
		got, err := names.ParseWorkPermissions(value)
		if err != nil || got.ClusterRole() != want.role || got.Admin() != want.admin {
			t.Errorf("%q: ClusterRole %q, admin %t, %v", value, got.ClusterRole(), got.Admin(), err)
		}
	}
	for _, value := range []string{"a/b", "..", ".", "a%b"} {
		if got, err := names.ParseWorkPermissions(value); err == nil {
			t.Errorf("%q is %q", value, got)
		}
	}
}
