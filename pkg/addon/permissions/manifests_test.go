package permissions_test

import (
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/permissions"
)

func TestManifests(t *testing.T) {
	t.Parallel()
	m := permissions.Manifests{AddOn: "a1", MadeBy: "rbac", Grants: []permissions.Grant{permissions.Template("a1")}}
	for name, tc := range map[string]struct {
		render  func() (string, error)
		has     []string
		lacking string
	}{
		"a Role for each cluster": {m.PerCluster, []string{
			"FILL IN the rules", "FILL IN the name of the cluster", "kind: Role\n", "name: open-cluster-management:a1:agent\n",
			"name: system:open-cluster-management:cluster:CLUSTER_NAME:addon:a1", "kind: ServiceAccount",
		}, "ClusterRole"},
		"one ClusterRole": {m.Shared, []string{"kind: ClusterRole\n", "name: open-cluster-management:a1:agent:clusterrole\n"}, "kind: Role\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.render()
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range tc.has {
				if !strings.Contains(got, part) {
					t.Errorf("%q is not in:\n%s", part, got)
				}
			}
			if strings.Contains(got, tc.lacking) {
				t.Errorf("%q is in:\n%s", tc.lacking, got)
			}
		})
	}
}
