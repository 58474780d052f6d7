package names_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func TestParseAgentUser(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		user, cluster, agent string
		ok                   bool
	}{
		{user: "system:open-cluster-management:c1:a1", cluster: "c1", agent: "a1", ok: true},
		{user: "system:open-cluster-management:c1"},
		{user: "system:open-cluster-management:c1:"},
		{user: "system:open-cluster-management::a1"},
		{user: "system:open-cluster-management:c1:a1:x"},
		{user: "open-cluster-management:c1:a1"},
		{user: ""},
	} {
		cluster, agent, ok := names.ParseAgentUser(tc.user)
		if cluster != tc.cluster || agent != tc.agent || ok != tc.ok {
			t.Errorf("ParseAgentUser(%q) = %q, %q, %v", tc.user, cluster, agent, ok)
		}
	}
}

func FuzzParseAgentUser(f *testing.F) {
	f.Add("system:open-cluster-management:c1:a1")
	f.Add("system:open-cluster-management:managed-clusters")
	f.Fuzz(func(t *testing.T, user string) {
		cluster, agent, ok := names.ParseAgentUser(user)
		if ok && names.AgentUser(cluster, agent) != user {
			t.Errorf("AgentUser(%q, %q) is not %q", cluster, agent, user)
		}
	})
}

func TestValidateClusterName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"c1", "a", "cluster-1"} {
		if err := names.ValidateClusterName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "C1", "a.b", "-a", "a_b", "managed-clusters", "registration", "work", "a/b", "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg"} {
		if err := names.ValidateClusterName(name); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}
