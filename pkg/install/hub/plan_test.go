package hub_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func TestHubKeepsWhatIsLive(t *testing.T) {
	t.Parallel()
	live := hub.Values{
		Workload:     install.Workload{Registry: "mirror.example"},
		Server:       "https://hub.example",
		FeatureGates: []operatorv1.FeatureGate{{Feature: "ResourceCleanup", Mode: "Disable"}, {Feature: "ManifestWorkReplicaSet", Mode: "Enable"}},
		AutoApproved: []string{"me"},
	}.Over(nil)
	live.Spec.ServerConfiguration = &operatorv1.ServerConfiguration{ImagePullSpec: "x"}
	live.Spec.NodePlacement.NodeSelector = map[string]string{"a": "b"}

	if diff := cmp.Diff(live, hub.Values{}.Over(live)); diff != "" {
		t.Errorf("nothing was wanted (-live +got):\n%s", diff)
	}
	changed := hub.Values{FeatureGates: []operatorv1.FeatureGate{{Feature: "ResourceCleanup", Mode: "Enable"}}}.Over(live)
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
	live := hub.Values{}.Over(nil)
	for name, tc := range map[string]struct {
		live   *operatorv1.ClusterManager
		values hub.Values
		want   bool
	}{
		"a new one":         {want: true},
		"the same":          {live: live},
		"another image":     {live: live, values: hub.Values{Workload: install.Workload{Image: "x"}}, want: true},
		"another address":   {live: live, values: hub.Values{Server: "https://x"}, want: true},
		"a bootstrap token": {live: live, values: hub.Values{BootstrapToken: true}},
	} {
		objs, err := tc.values.ObjectsOver(tc.live, bootstrap.ClusterInfo{Server: "https://hub"})
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
	deleting := hub.Values{}.Over(nil)
	deleting.DeletionTimestamp = &metav1.Time{}
	deleting.DeletionTimestamp.Time = deleting.DeletionTimestamp.AddDate(2000, 0, 0)
	hosted := hub.Values{}.Over(nil)
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
		{name: "a managed cluster", facts: install.Facts{Kubernetes: v("1.36.0"), Klusterlet: &operatorv1.Klusterlet{}}, want: wantFindings{fatal: []string{install.CheckClusterKind}}},
		{name: "a hub that is a managed cluster too", facts: install.Facts{Kubernetes: v("1.36.0"), Klusterlet: &operatorv1.Klusterlet{}, Manager: hub.Values{}.Over(nil)}},
		{name: "another mode", facts: install.Facts{Kubernetes: v("1.36.0"), Manager: hosted}, want: wantFindings{fatal: []string{install.CheckExisting}}},
		{name: "no image to pull", facts: install.Facts{Kubernetes: v("1.36.0"), Pulls: true}, want: wantFindings{fatal: []string{install.CheckImage}}},
		{name: "an image that runs already", facts: install.Facts{Kubernetes: v("1.36.0"), Pulls: true, Manager: hub.Values{}.Over(nil)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := found(hub.Check(tc.facts, hub.Values{}))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(wantFindings{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
