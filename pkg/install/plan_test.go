package install_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func TestImage(t *testing.T) {
	t.Parallel()
	ours := "kubectl-ocm:v" + buildinfo.Version
	for _, tc := range []struct {
		name  string
		value install.Workload
		live  string
		want  string
	}{
		{name: "a new installation", want: buildinfo.DefaultImage()},
		{name: "an image", value: install.Workload{Image: "a/b:c"}, live: "x/y:z", want: "a/b:c"},
		{name: "a registry", value: install.Workload{Registry: "r:5000/m/"}, want: "r:5000/m/" + ours},
		{name: "an older release is upgraded", live: "kubectl-ocm/kubectl-ocm:v0.0.1", want: "kubectl-ocm/" + ours},
		{name: "where it is mirrored", live: "r:5000/m/kubectl-ocm:v0.0.1", want: "r:5000/m/" + ours},
		{name: "a digest stays", live: "r/kubectl-ocm@sha256:00", want: "r/kubectl-ocm@sha256:00"},
		{name: "a tag of one's own stays", live: "r/kubectl-ocm:mine", want: "r/kubectl-ocm:mine"},
		{name: "somebody else's image stays", live: "registry.example.com/ocm/registration:v1.3.1", want: "registry.example.com/ocm/registration:v1.3.1"},
		{name: "a port is no tag", live: "r:5000/kubectl-ocm", want: "r:5000/kubectl-ocm"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.value.ImageOver(tc.live); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestHubKeepsWhatIsLive(t *testing.T) {
	t.Parallel()
	live := install.Hub{
		Workload:     install.Workload{Registry: "mirror.example"},
		Server:       "https://hub.example",
		FeatureGates: []operatorv1.FeatureGate{{Feature: "ResourceCleanup", Mode: "Disable"}, {Feature: "ManifestWorkReplicaSet", Mode: "Enable"}},
		AutoApproved: []string{"me"},
	}.Over(nil)
	live.Spec.ServerConfiguration = &operatorv1.ServerConfiguration{ImagePullSpec: "x"}
	live.Spec.NodePlacement.NodeSelector = map[string]string{"a": "b"}

	if diff := cmp.Diff(live, install.Hub{}.Over(live)); diff != "" {
		t.Errorf("nothing was wanted (-live +got):\n%s", diff)
	}
	changed := install.Hub{FeatureGates: []operatorv1.FeatureGate{{Feature: "ResourceCleanup", Mode: "Enable"}}}.Over(live)
	want := live.DeepCopy()
	want.Spec.RegistrationConfiguration.FeatureGates[0].Mode = "Enable"
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("one gate was wanted (-want +got):\n%s", diff)
	}
	if got := live.Spec.WorkConfiguration.FeatureGates; len(got) != 1 || got[0].Feature != "ManifestWorkReplicaSet" {
		t.Errorf("gates of works: %v", got)
	}
	for _, user := range []string{"me", names.BootstrapServiceAccountUser, "system:bootstrap:ocmhub"} {
		if !slices.Contains(live.Spec.RegistrationConfiguration.AutoApproveUsers, user) {
			t.Errorf("%s is not among %v", user, live.Spec.RegistrationConfiguration.AutoApproveUsers)
		}
	}
}

func TestHubAppliesNoUnchangedClusterManager(t *testing.T) {
	t.Parallel()
	live := install.Hub{}.Over(nil)
	for name, tc := range map[string]struct {
		live *operatorv1.ClusterManager
		hub  install.Hub
		want bool
	}{
		"a new one":         {want: true},
		"the same":          {live: live},
		"another image":     {live: live, hub: install.Hub{Workload: install.Workload{Image: "x"}}, want: true},
		"another address":   {live: live, hub: install.Hub{Server: "https://x"}, want: true},
		"a bootstrap token": {live: live, hub: install.Hub{BootstrapToken: true}},
	} {
		objs, err := tc.hub.ObjectsOver(tc.live, bootstrap.ClusterInfo{Server: "https://hub"})
		if err != nil {
			t.Fatal(err)
		}
		got := false
		for _, obj := range objs {
			got = got || obj.GetObjectKind().GroupVersionKind().Kind == "ClusterManager"
		}
		if got != tc.want {
			t.Errorf("%s: a ClusterManager among the objects: %v", name, got)
		}
	}
}

func TestKlusterletKeepsWhatIsLive(t *testing.T) {
	t.Parallel()
	live := install.Klusterlet{
		ClusterName: "c1", ExternalServer: "https://c1",
		Registration: install.Registration{
			CertificateSeconds: new(int32(3600)), Labels: map[string]string{"a": "b"},
			AddOns: &operatorv1.AddOnRegistrationDriver{AuthType: "token"},
		},
	}.Over(nil)
	live.Spec.HubApiServerHostAlias = &operatorv1.HubApiServerHostAlias{IP: "10.0.0.1", Hostname: "hub"}

	if diff := cmp.Diff(live, install.Klusterlet{}.Over(live)); diff != "" {
		t.Errorf("nothing was wanted (-live +got):\n%s", diff)
	}
	got := install.Klusterlet{
		ExternalServer: "https://found", Registration: install.Registration{Labels: map[string]string{"c": "d"}},
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
	permitted := func(p names.WorkPermissions) install.Klusterlet {
		return install.Klusterlet{Work: install.Work{Permissions: p}}
	}
	without, with := install.Klusterlet{Work: install.Work{Enabled: new(false)}}, install.Klusterlet{Work: install.Work{Enabled: new(true)}}
	for name, tc := range map[string]struct {
		live *operatorv1.Klusterlet
		k    install.Klusterlet
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
		got, err := install.WorkPermissions(tc.k.Over(tc.live))
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tc.want)
		}
	}
	if annotation := (install.Klusterlet{}).Over(nil).Annotations[names.AnnotationWorkPermissions]; annotation != "admin" {
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

func TestCheckHub(t *testing.T) {
	t.Parallel()
	deleting := install.Hub{}.Over(nil)
	deleting.DeletionTimestamp = &metav1.Time{}
	deleting.DeletionTimestamp.Time = deleting.DeletionTimestamp.AddDate(2000, 0, 0)
	hosted := install.Hub{}.Over(nil)
	hosted.Spec.DeployOption.Mode = operatorv1.InstallModeHosted
	for _, tc := range []struct {
		name  string
		facts install.Facts
		want  wantFindings
	}{
		{name: "a good cluster", facts: install.Facts{Kubernetes: v("1.30.0")}},
		{name: "too old", facts: install.Facts{Kubernetes: v("1.29.9")}, want: wantFindings{fatal: []string{install.CheckVersion}}},
		{name: "a development build", facts: install.Facts{Kubernetes: v("0.0.0")}, want: wantFindings{warnings: []string{install.CheckVersion}}},
		{name: "our release", facts: install.Facts{Kubernetes: v("1.36.0"), Release: buildinfo.Version}},
		{name: "an upstream release", facts: install.Facts{Kubernetes: v("1.36.0"), Release: "unknown"}},
		{
			name:  "everything is wrong, and all of it is said",
			facts: install.Facts{Kubernetes: v("1.22.0"), Release: "99.0.0", Terminating: []string{"x"}, Missing: []access.Right{{Verb: "create"}}, Manager: deleting},
			want: wantFindings{fatal: []string{
				install.CheckVersion, install.CheckPermissions, install.CheckDowngrade, install.CheckTerminating, install.CheckExisting,
			}},
		},
		{name: "a managed cluster", facts: install.Facts{Kubernetes: v("1.36.0"), Klusterlet: install.Klusterlet{}.Over(nil)}, want: wantFindings{fatal: []string{install.CheckClusterKind}}},
		{name: "a hub that is a managed cluster too", facts: install.Facts{Kubernetes: v("1.36.0"), Klusterlet: install.Klusterlet{}.Over(nil), Manager: install.Hub{}.Over(nil)}},
		{name: "another mode", facts: install.Facts{Kubernetes: v("1.36.0"), Manager: hosted}, want: wantFindings{fatal: []string{install.CheckExisting}}},
		{name: "no image to pull", facts: install.Facts{Kubernetes: v("1.36.0"), Pulls: true}, want: wantFindings{fatal: []string{install.CheckImage}}},
		{name: "an image that runs already", facts: install.Facts{Kubernetes: v("1.36.0"), Pulls: true, Manager: install.Hub{}.Over(nil)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := found(install.CheckHub(tc.facts))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(wantFindings{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckKlusterlet(t *testing.T) {
	t.Parallel()
	wanted := install.Klusterlet{ClusterName: "c1", Bootstrap: []byte("x")}
	onHub := func(accepts bool, available metav1.ConditionStatus) *clusterv1.ManagedCluster {
		c := &clusterv1.ManagedCluster{}
		c.Spec.HubAcceptsClient = accepts
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: available}}
		return c
	}
	for _, tc := range []struct {
		name  string
		facts install.Facts
		value install.Klusterlet
		hub   *clusterv1.ManagedCluster
		want  wantFindings
	}{
		{name: "a new cluster", value: wanted},
		{name: "an old cluster", value: wanted, facts: install.Facts{Kubernetes: v("1.22.0")}, want: wantFindings{warnings: []string{install.CheckVersion}}},
		{name: "too old", value: wanted, facts: install.Facts{Kubernetes: v("1.21.9")}, want: wantFindings{fatal: []string{install.CheckVersion}}},
		{name: "again", value: wanted, facts: install.Facts{Klusterlet: wanted.Over(nil)}, hub: onHub(true, "True")},
		{
			name: "under another name", value: install.Klusterlet{ClusterName: "c2", Bootstrap: []byte("x")},
			facts: install.Facts{Klusterlet: wanted.Over(nil)}, want: wantFindings{fatal: []string{install.CheckClusterName}},
		},
		{name: "a hub", value: wanted, facts: install.Facts{Manager: install.Hub{}.Over(nil)}, want: wantFindings{fatal: []string{install.CheckClusterKind}}},
		{name: "a name that is in use", value: wanted, hub: onHub(true, "True"), want: wantFindings{fatal: []string{install.CheckClusterName}}},
		{name: "a name whose cluster is lost", value: wanted, hub: onHub(true, "Unknown"), want: wantFindings{warnings: []string{install.CheckClusterName}}},
		{name: "a name that may be our own", value: wanted, facts: install.Facts{Hidden: true}, hub: onHub(true, "True"), want: wantFindings{warnings: []string{install.CheckClusterName}}},
		{name: "a refresh of what cannot be read", value: install.Klusterlet{ClusterName: "c1"}, facts: install.Facts{Hidden: true}},
		{name: "a name whose cluster has left", value: wanted, hub: onHub(false, "True")},
		{name: "no image to pull", value: wanted, facts: install.Facts{Pulls: true}, want: wantFindings{fatal: []string{install.CheckImage}}},
		{name: "an image that runs already", value: wanted, facts: install.Facts{Pulls: true, Klusterlet: wanted.Over(nil)}},
		{
			name: "an image that the user names", facts: install.Facts{Pulls: true},
			value: install.Klusterlet{ClusterName: "c1", Bootstrap: []byte("x"), Workload: install.Workload{Image: buildinfo.DefaultImage()}},
		},
		{name: "nothing to refresh", value: install.Klusterlet{ClusterName: "c1"}, want: wantFindings{fatal: []string{install.CheckExisting}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.facts.Kubernetes == nil {
				tc.facts.Kubernetes = v(install.TestedManaged)
			}
			got := found(install.CheckKlusterlet(tc.facts, tc.value, tc.hub))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(wantFindings{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSkippedChecksOnlyWarn(t *testing.T) {
	t.Parallel()
	findings := []install.Finding{
		{Check: "a", Severity: install.Fatal}, {Check: "b", Severity: install.Fatal}, {Check: "c", Severity: install.Warning},
	}
	warnings, err := install.Sift(findings, "a", "b")
	if err != nil || len(warnings) != 3 {
		t.Errorf("%v, %v", warnings, err)
	}
	warnings, err = install.Sift(findings, "a")
	if err == nil || len(warnings) != 2 {
		t.Errorf("%v, %v", warnings, err)
	}
}
