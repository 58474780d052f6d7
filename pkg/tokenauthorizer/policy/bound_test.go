package policy_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// TestTargetNamespacesAlwaysBind: target.namespaces limits where a rule leads,
// also when the rule lists the namespaces of the cluster.
func TestTargetNamespacesAlwaysBind(t *testing.T) {
	t.Parallel()
	for _, namespaces := range [][]string{nil, {"app-*", "team-*"}, {"app-a", "team-a"}} {
		rules := compile(t, policy.Spec{Cluster: "c1", Allow: []v1alpha1.Rule{{
			Namespaces: namespaces, MapTo: fixed("{namespace}", "{name}"),
			Target: &v1alpha1.Target{Namespaces: []string{"team-*"}},
		}}})
		if _, err := rules.Decide(identity("c1", "app-a", "eso")); err == nil || denial.Of(err).Reason != denial.TargetDenied {
			t.Errorf("namespaces %q: outside of the bound: %v", namespaces, err)
		}
		if grant, err := rules.Decide(identity("c1", "team-a", "eso")); err != nil || grant.Target.Namespace != "team-a" {
			t.Errorf("namespaces %q: within the bound: %+v, %v", namespaces, grant, err)
		}
	}
}
