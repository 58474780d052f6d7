package takeover

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// surveyed is a hub, or an agent, whose resource has a spec.
func surveyed(t *testing.T, kind, spec string) *Survey {
	t.Helper()
	s := &Survey{Found: &origin.Installation{}, Users: map[string]int{}, side: side{what: "hub", kind: operatorKind(kind), name: names.ClusterManagerName}}
	if kind == "Klusterlet" {
		s.side.what, s.side.name = "agent", names.KlusterletName
	}
	resource := unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte("spec: "+spec), &resource.Object); err != nil {
		t.Fatal(err)
	}
	resource.SetGroupVersionKind(s.side.kind)
	resource.SetName(s.side.name)
	s.Resources = []unstructured.Unstructured{resource}
	return s
}

func TestChanges(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, kind, spec string
		change           func(*Survey)
		want             []string
	}{
		{name: "what clusteradm init sets", kind: "ClusterManager", spec: `{deployOption: {mode: Default}, registrationImagePullSpec: a, nodePlacement: {}}`},
		{
			name: "gates that are implemented, and one that is off", kind: "ClusterManager",
			spec: `{registrationConfiguration: {featureGates: [{feature: ManagedClusterAutoApproval, mode: Enable}, {feature: ClusterProfile, mode: Disable}]}}`,
		},
		{
			name: "a gate of the work agent that changes nothing", kind: "Klusterlet",
			spec: `{workConfiguration: {featureGates: [{feature: ExecutorValidatingCaches, mode: Enable}, {feature: RawFeedbackJsonString, mode: Enable}]}}`,
		},
		{
			name: "defaults of the CRD", kind: "Klusterlet",
			spec: `{registrationConfiguration: {kubeAPIQPS: 50, kubeAPIBurst: 100}, workConfiguration: {kubeAPIQPS: 50, kubeAPIBurst: 100, hubKubeAPIQPS: 50, hubKubeAPIBurst: 100}}`,
		},
		{
			name: "gates that OCM enables by default", kind: "ClusterManager",
			spec: `{registrationConfiguration: {featureGates: [{feature: DefaultClusterSet, mode: Enable}]}, placementConfiguration: {featureGates: [{feature: PlacementDebugServer, mode: Enable}]}}`,
		},
		{
			name: "limits that someone set", kind: "Klusterlet",
			spec: `{registrationConfiguration: {kubeAPIQPS: 50, kubeAPIBurst: 50}, workConfiguration: {hubKubeAPIQPS: 100}}`,
			want: []string{"registrationConfiguration.kubeAPIQPS", "workConfiguration.kubeAPIQPS"},
		},
		{
			name: "what AddOnTemplates need", kind: "ClusterManager", spec: `{}`,
			change: func(s *Survey) {
				s.Grants = []string{"one", "two"}
				s.Found.Components = []origin.Deployment{{Args: []string{"/addon", "manager"}}}
			},
			want: []string{"addon-templates"},
		},
		{
			name: "gates that are not", kind: "ClusterManager",
			spec: `{registrationConfiguration: {featureGates: [{feature: ClusterImporter, mode: Enable}]}, workConfiguration: {featureGates: [{feature: CloudEventsDrivers, mode: Enable}, {feature: ManifestWorkReplicaSet, mode: Enable}], workDriver: grpc}}`,
			want: []string{"CloudEventsDrivers", "ClusterImporter", "workDriver"},
		},
		{
			name: "other fields of a hub", kind: "ClusterManager",
			spec: `{serverConfiguration: {imagePullSpec: a}, deployOption: {default: {addonWebhookConfiguration: {bindConfiguration: {port: 9444}}}}, later: 1}`,
			want: []string{"bindConfiguration", "later", "serverConfiguration"},
		},
		{
			name: "an agent in one pod, with limits and several hubs", kind: "Klusterlet",
			spec: `{deployOption: {mode: Singleton}, registrationConfiguration: {kubeAPIQPS: 5, bootstrapKubeConfigs: {type: LocalSecrets, localSecretsConfig: {kubeConfigSecrets: []}}}, workConfiguration: {hubKubeAPIBurst: 7}}`,
			want: []string{"bootstrapKubeConfigs", "mode", "registrationConfiguration.kubeAPIQPS", "workConfiguration.kubeAPIQPS"},
		},
		{
			name: "placements and sets without a controller of OCM", kind: "ClusterManager", spec: `{}`,
			change: func(s *Survey) { s.Users["Placement"], s.Users["ManagedClusterSet"] = 3, 1 },
		},
		{
			name: "placements and a flag", kind: "ClusterManager", spec: `{}`,
			change: func(s *Survey) {
				s.Users["Placement"] = 3
				s.Found.Operators = []origin.Deployment{{Args: []string{"/registration-operator", "hub", "--enable-sync-labels", "--deployment-replicas=3"}}}
				s.Found.Components = []origin.Deployment{
					{Args: []string{"/placement", "controller"}}, {Args: []string{"/work", "manager"}}, {Args: []string{"/work", "webhook-server"}},
				}
			},
			want: []string{"deployment-replicas", "placements"},
		},
		{
			name: "cluster sets of users", kind: "ClusterManager", spec: `{}`,
			change: func(s *Survey) {
				s.Users["ManagedClusterSet"] = 1
				s.Found.Components = []origin.Deployment{{Args: []string{"/registration", "controller"}}}
			},
			want: []string{"cluster-sets"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := surveyed(t, tc.kind, tc.spec)
			if tc.change != nil {
				tc.change(s)
			}
			if got := (Plan{Changes: s.Changes(nil)}).Unaccepted(); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if left := (Plan{Changes: s.Changes(tc.want)}).Unaccepted(); len(left) > 0 {
				t.Errorf("accepted, and still %v", left)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, kind, spec string
		change           func(*Survey)
		want             string
	}{
		{name: "none", kind: "Klusterlet", spec: `{deployOption: {mode: Singleton}}`},
		{name: "the driver grpc of an agent", kind: "Klusterlet", spec: `{registrationConfiguration: {registrationDriver: {authType: grpc}}}`, want: "grpc"},
		{name: "the driver grpc of a hub", kind: "ClusterManager", spec: `{registrationConfiguration: {registrationDrivers: [{authType: csr}, {authType: grpc}]}}`, want: "grpc"},
		{
			name: "an operator that OLM restores", kind: "ClusterManager", spec: `{}`, want: "would be restored",
			change: func(s *Survey) {
				s.Found.Operators = []origin.Deployment{{Namespace: names.OperatorNamespace, Tool: "the Operator Lifecycle Manager", Restored: true}}
			},
		},
		{
			name: "a Helm release that nothing restores", kind: "Klusterlet", spec: `{}`,
			change: func(s *Survey) {
				s.Found.Operators = []origin.Deployment{{Namespace: names.OperatorNamespace, Tool: "the Helm release x/y"}}
			},
		},
		{
			name: "a distribution", kind: "ClusterManager", spec: `{}`, want: "not in the namespace",
			change: func(s *Survey) { s.Found.Operators = []origin.Deployment{{Namespace: "multicluster-engine"}} },
		},
		{
			name: "a Klusterlet that Flux restores", kind: "Klusterlet", spec: `{}`, want: "the Klusterlet klusterlet, installed by the Kustomization x/y of Flux",
			change: func(s *Survey) {
				s.Resources[0].SetLabels(map[string]string{"kustomize.toolkit.fluxcd.io/namespace": "x", "kustomize.toolkit.fluxcd.io/name": "y"})
			},
		},
		{
			name: "another Klusterlet", kind: "Klusterlet", spec: `{}`, want: "Klusterlet hosted",
			change: func(s *Survey) { s.Resources[0].SetName("hosted") },
		},
		{
			name: "a stored version that is unknown", kind: "ClusterManager", spec: `{}`, want: "stored in v9",
			change: func(s *Survey) { s.stored("v9", "1.3.0") },
		},
		{
			name: "one of a CRD that is left alone", kind: "ClusterManager", spec: `{}`,
			change: func(s *Survey) { s.stored("v9", "1.4.0") },
		},
		{
			name: "a stored version that is known", kind: "ClusterManager", spec: `{}`,
			change: func(s *Survey) { s.stored("v1", "1.3.0") },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := surveyed(t, tc.kind, tc.spec)
			if tc.change != nil {
				tc.change(s)
			}
			problems := s.Problems()
			switch {
			case tc.want == "" && len(problems) > 0:
				t.Errorf("got %+v", problems)
			case tc.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Message, tc.want)):
				t.Errorf("got %+v, want one with %q", problems, tc.want)
			}
		})
	}
}

// stored has a CRD that ours serves in v1, stored in a version by a release.
func (s *Survey) stored(stored, release string) {
	ours := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": []any{map[string]any{"name": "v1"}}}}}
	ours.SetName("c")
	s.ours = []*unstructured.Unstructured{ours}
	s.CRDs = []apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{names.AnnotationVersion: release}},
		Status:     apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{stored}},
	}}
}

// TestReleased: of the CRDs only those are touched that our operator would leave alone
// and may write.
func TestReleased(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]int{"": 0, "1.3.1": 1, "v1.2.0": 1, "1.4.0": 0, "2.0.0": 0, "0.0.1": 0, "main": 0} {
		s := surveyed(t, "ClusterManager", "{}")
		s.stored("v1", version)
		if got := len(s.released()); got != want {
			t.Errorf("version %q: %d CRDs are released, want %d", version, got, want)
		}
	}
}

// TestHelm: a release is forgotten after everything else of it is gone, and found by what
// stays until then.
func TestHelm(t *testing.T) {
	t.Parallel()
	s := surveyed(t, "Klusterlet", "{}")
	s.Found = nil
	s.Resources[0].SetAnnotations(map[string]string{"meta.helm.sh/release-namespace": "x", "meta.helm.sh/release-name": "y"})
	if !s.Empty() || len(s.Changes(nil)) > 0 {
		t.Error("there is something to take over, and nothing is left of Helm")
	}
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "sh.helm.release.v1.y.v1"}}
	secret.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	s.Helm = []client.Object{secret}
	p := s.Plan(nil)
	if !slices.Equal(p.Unaccepted(), []string{"helm-release"}) || !strings.Contains(p.Changes[0].Message, "the Helm release x/y") {
		t.Errorf("the changes are %+v", p.Changes)
	}
	if len(p.Before) > 0 || len(p.After) != 2 || !slices.Equal(p.After[0].Objects, []string{"Secret x/sh.helm.release.v1.y.v1"}) {
		t.Errorf("the steps are %+v", p)
	}
}

// TestOrderOfAHub: what is found once is in one step, and steps without objects are
// left out.
func TestOrderOfAHub(t *testing.T) {
	t.Parallel()
	s := surveyed(t, "ClusterManager", "{}")
	s.Found.Components = []origin.Deployment{
		{Namespace: names.HubNamespace, Name: names.HubAddOnWebhookDeployment(names.ClusterManagerName), Args: []string{"/addon", "webhook-server"}},
		{Namespace: names.HubNamespace, Name: "cluster-manager-work-webhook", Args: []string{"/work", "webhook-server"}},
		{Namespace: names.HubNamespace, Name: "cluster-manager-placement-controller", Args: []string{"/placement", "controller"}},
	}
	s.Found.Webhooks = []string{"mutatingwebhookconfiguration/a", "validatingwebhookconfiguration/b"}
	p := s.Plan(nil)
	var got []string
	for _, step := range slices.Concat(p.Before, p.After) {
		got = append(got, string(step.action)+" "+strings.Join(step.Objects, ","))
	}
	want := []string{
		"stop Deployment open-cluster-management-hub/cluster-manager-placement-controller",
		"hand over Deployment open-cluster-management-hub/cluster-manager-addon-webhook",
		"delete MutatingWebhookConfiguration a,ValidatingWebhookConfiguration b",
		"stop Deployment open-cluster-management-hub/cluster-manager-work-webhook",
		"sweep ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if plan := (&Survey{}).Plan(nil); plan.From != "" || len(plan.After) > 0 {
		t.Errorf("nothing is found, and there is a plan: %+v", plan)
	}
}
