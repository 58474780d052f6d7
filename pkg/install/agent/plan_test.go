package agent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func TestKlusterletKeepsWhatIsLive(t *testing.T) {
	t.Parallel()
	live := agent.Values{
		ClusterName: "c1", ExternalServer: "https://c1",
		Registration: agent.Registration{
			CertificateSeconds: new(int32(3600)), Labels: map[string]string{"a": "b"},
			AddOns: &operatorv1.AddOnRegistrationDriver{AuthType: "token"},
		},
	}.Over(nil)
	live.Spec.HubApiServerHostAlias = &operatorv1.HubApiServerHostAlias{IP: "10.0.0.1", Hostname: "hub"}

	if diff := cmp.Diff(live, agent.Values{}.Over(live)); diff != "" {
		t.Errorf("nothing was wanted (-live +got):\n%s", diff)
	}
	got := agent.Values{
		ExternalServer: "https://found", Registration: agent.Registration{Labels: map[string]string{"c": "d"}},
	}.Over(live)
	want := live.DeepCopy()
	want.Spec.RegistrationConfiguration.ClusterLabels["c"] = "d"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a label was wanted (-want +got):\n%s", diff)
	}
}

// TestWorkAgentIsWhatWasAskedFor: what a new work agent may do is stated, a flag
// changes it, and the operator may grant exactly that.
func TestWorkAgentIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	permitted := func(p names.WorkPermissions) agent.Values {
		return agent.Values{Work: agent.Work{Permissions: p}}
	}
	without, with := agent.Values{Work: agent.Work{Enabled: new(false)}}, agent.Values{Work: agent.Work{Enabled: new(true)}}
	for name, tc := range map[string]struct {
		live *operatorv1.Klusterlet
		k    agent.Values
		want names.WorkPermissions
	}{
		"a new one":            {want: names.WorkPermissionsAdmin},
		"of a view":            {k: permitted("view"), want: names.WorkPermissionsView},
		"of a role":            {k: permitted("deployer"), want: "deployer"},
		"none":                 {k: without},
		"OCM's":                {live: &operatorv1.Klusterlet{}, want: names.WorkPermissionsAdmin},
		"kept":                 {live: permitted("view").Over(nil), want: names.WorkPermissionsView},
		"changed":              {live: permitted("view").Over(nil), k: permitted("none"), want: names.WorkPermissionsNone},
		"kept without":         {live: without.Over(nil)},
		"installed after all":  {live: without.Over(nil), k: with, want: names.WorkPermissionsAdmin},
		"removed":              {live: permitted("view").Over(nil), k: without},
		"removed and restored": {live: without.Over(permitted("view").Over(nil)), k: with, want: names.WorkPermissionsView},
	} {
		got, err := agent.WorkPermissions(tc.k.Over(tc.live))
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tc.want)
		}
	}
	if annotation := (agent.Values{}).Over(nil).Annotations[names.AnnotationWorkPermissions]; annotation != "admin" {
		t.Errorf("a new Klusterlet states %q", annotation)
	}
	if _, err := permitted("a/b").Render(); err == nil {
		t.Error("rendered with a ClusterRole that no cluster can have")
	}
}

// wantFindings are the checks that fail, and those that warn.
type wantFindings struct{ fatal, warnings []string }

func found(findings []install.Finding) wantFindings {
	var got wantFindings
	for _, f := range findings {
		if f.Severity == install.Fatal {
			got.fatal = append(got.fatal, f.Check)
		} else {
			got.warnings = append(got.warnings, f.Check)
		}
	}
	return got
}

func v(s string) *version.Version { return version.MustParseGeneric(s) }

func TestCheckKlusterlet(t *testing.T) {
	t.Parallel()
	wanted := agent.Values{ClusterName: "c1", Bootstrap: []byte("x")}
	onHub := func(accepts bool, available metav1.ConditionStatus) *clusterv1.ManagedCluster {
		c := &clusterv1.ManagedCluster{}
		c.Spec.HubAcceptsClient = accepts
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: available}}
		return c
	}
	for _, tc := range []struct {
		name  string
		facts install.Facts
		value agent.Values
		hub   *clusterv1.ManagedCluster
		want  wantFindings
	}{
		{name: "a new cluster", value: wanted},
		{name: "an old cluster", value: wanted, facts: install.Facts{Kubernetes: v("1.22.0")}, want: wantFindings{warnings: []string{install.CheckVersion}}},
		{name: "too old", value: wanted, facts: install.Facts{Kubernetes: v("1.21.9")}, want: wantFindings{fatal: []string{install.CheckVersion}}},
		{name: "again", value: wanted, facts: install.Facts{Klusterlet: wanted.Over(nil)}, hub: onHub(true, "True")},
		{
			name: "under another name", value: agent.Values{ClusterName: "c2", Bootstrap: []byte("x")},
			facts: install.Facts{Klusterlet: wanted.Over(nil)}, want: wantFindings{fatal: []string{install.CheckClusterName}},
		},
		{name: "a hub", value: wanted, facts: install.Facts{Manager: &operatorv1.ClusterManager{}}, want: wantFindings{fatal: []string{install.CheckClusterKind}}},
		{name: "a name that is in use", value: wanted, hub: onHub(true, "True"), want: wantFindings{fatal: []string{install.CheckClusterName}}},
		{name: "a name whose cluster is lost", value: wanted, hub: onHub(true, "Unknown"), want: wantFindings{warnings: []string{install.CheckClusterName}}},
		{name: "a name that may be our own", value: wanted, facts: install.Facts{Hidden: true}, hub: onHub(true, "True"), want: wantFindings{warnings: []string{install.CheckClusterName}}},
		{name: "a refresh of what cannot be read", value: agent.Values{ClusterName: "c1"}, facts: install.Facts{Hidden: true}},
		{name: "a name whose cluster has left", value: wanted, hub: onHub(false, "True")},
		{name: "no image to pull", value: wanted, facts: install.Facts{Pulls: true}, want: wantFindings{fatal: []string{install.CheckImage}}},
		{name: "an image that runs already", value: wanted, facts: install.Facts{Pulls: true, Klusterlet: wanted.Over(nil)}},
		{
			name: "an image that the user names", facts: install.Facts{Pulls: true},
			value: agent.Values{ClusterName: "c1", Bootstrap: []byte("x"), Workload: install.Workload{Image: buildinfo.DefaultImage()}},
		},
		{name: "nothing to refresh", value: agent.Values{ClusterName: "c1"}, want: wantFindings{fatal: []string{install.CheckExisting}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.facts.Kubernetes == nil {
				tc.facts.Kubernetes = v(install.TestedManaged)
			}
			got := found(agent.Check(tc.facts, tc.value, tc.hub))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(wantFindings{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
