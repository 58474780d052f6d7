package origin_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

// simple is a Deployment without any sign of who made it.
func simple(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example"}}},
			},
		},
	}
}

// TestSeenByWhatRuns plants one installation after the other that differs
// in what gives it away.
func TestSeenByWhatRuns(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	c := cp.Client(t)
	for _, namespace := range []string{names.OperatorNamespace, names.HubNamespace, "multicluster-engine", "somebody"} {
		ns := &corev1.Namespace{}
		ns.Name = namespace
		if err := c.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name, namespace, deployment string
		change                      func(*appsv1.Deployment)
		want                        string
	}{
		{
			name: "a distribution in a namespace of its own, by OLM", namespace: "multicluster-engine", deployment: "cluster-manager",
			change: func(d *appsv1.Deployment) {
				d.Labels = map[string]string{"olm.owner": "multicluster-engine.v2.9.0"}
				d.Spec.Template.Spec.Containers[0].Image = "registry.example/mce/registration-operator-rhel9@sha256:00"
			},
			want: "ClusterServiceVersion multicluster-engine.v2.9.0",
		},
		{
			name: "its arguments alone", namespace: "somebody", deployment: "cluster-manager",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Args = []string{"/registration-operator", "hub"}
			},
			want: "somebody/cluster-manager",
		},
		{
			name: "a Helm release", namespace: names.OperatorNamespace, deployment: "cluster-manager",
			change: func(d *appsv1.Deployment) {
				d.Annotations = map[string]string{"meta.helm.sh/release-name": "ocm", "meta.helm.sh/release-namespace": "default"}
			},
			want: "the Helm release default/ocm",
		},
		{
			name: "a Helm release that Flux restores", namespace: names.OperatorNamespace, deployment: "cluster-manager",
			change: func(d *appsv1.Deployment) {
				d.Annotations = map[string]string{"meta.helm.sh/release-name": "ocm", "meta.helm.sh/release-namespace": "default"}
				d.Labels = map[string]string{"helm.toolkit.fluxcd.io/name": "hub", "helm.toolkit.fluxcd.io/namespace": "flux"}
			},
			want: "the HelmRelease flux/hub of Flux",
		},
		{
			name: "a Kustomization", namespace: names.OperatorNamespace, deployment: "cluster-manager",
			change: func(d *appsv1.Deployment) {
				d.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "hub", "kustomize.toolkit.fluxcd.io/namespace": "flux"}
			},
			want: "the Kustomization flux/hub of Flux",
		},
		{
			name: "an Application", namespace: names.OperatorNamespace, deployment: "cluster-manager",
			change: func(d *appsv1.Deployment) {
				d.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "hub:apps/Deployment:open-cluster-management/cluster-manager"}
			},
			want: "the Application hub of Argo CD",
		},
		{
			name: "no sign of anybody where ours would be", namespace: names.OperatorNamespace, deployment: "cluster-manager",
			change: func(*appsv1.Deployment) {}, want: "open-cluster-management/cluster-manager",
		},
		{
			name: "a component whose operator is gone", namespace: names.HubNamespace, deployment: "cluster-manager-placement-controller",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Args = []string{"/placement", "controller"}
			},
			want: "end cluster-manager-placement-controller",
		},
		{
			name: "one that upstream took back from us", namespace: names.OperatorNamespace, deployment: "cluster-manager",
			change: func(d *appsv1.Deployment) {
				d.Annotations = map[string]string{"applied.open-cluster-management.io/ocm.cli": "00"}
				d.Spec.Template.Spec.Containers[0].Args = []string{"/registration-operator", "hub"}
			},
			want: "open-cluster-management/cluster-manager",
		},
		{
			name: "somebody else's that has the name", namespace: "somebody", deployment: "cluster-manager",
			change: func(*appsv1.Deployment) {},
		},
		{
			name: "somebody else's in the hub's namespace", namespace: names.HubNamespace, deployment: "addon",
			change: func(*appsv1.Deployment) {},
		},
		{
			name: "what a takeover by an earlier build left", namespace: names.HubNamespace, deployment: "cluster-manager-addon-webhook",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers,
					corev1.Container{Name: "theirs", Image: upstream.Image("addon-manager"), Args: []string{"/addon", "webhook-server"}},
					corev1.Container{Name: "ours", Image: "example", Args: []string{"controller", "webhook"}})
			},
		},
	} {
		d := simple(tc.namespace, tc.deployment)
		tc.change(d)
		if err := c.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		found, err := origin.Hub(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case tc.want == "" && found != nil:
			t.Errorf("%s: taken for another product's: %s", tc.name, found)
		case tc.want != "" && found == nil:
			t.Errorf("%s: not seen", tc.name)
		case tc.want != "" && !strings.Contains(found.String()+found.Loss(), tc.want):
			t.Errorf("%s: %s. %s does not name %q", tc.name, found, found.Loss(), tc.want)
		}
		if err := c.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeftWebhooksAreSeen is about a hub that was removed in part: what is left
// of it rejects every write.
func TestLeftWebhooksAreSeen(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	c := cp.Client(t)
	for _, obj := range upstream.WebhookConfigurations(t) {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	found, err := origin.Hub(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if found == nil || found.Runs() {
		t.Fatalf("got %+v", found)
	}
	if want := "kubectl delete mutatingwebhookconfiguration/managedclustermutators.admission.cluster.open-cluster-management.io"; !strings.Contains(found.Try(), want) {
		t.Errorf("%q does not say %q", found.Try(), want)
	}
}

// TestAgentsByNamespaces searches as an operator does.
func TestAgentsByNamespaces(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	c := cp.Client(t)
	upstream.Klusterlet(t, c, "cluster1")
	for _, tc := range []struct {
		namespaces []string
		runs       int
	}{
		{nil, 3}, {[]string{names.OperatorNamespace}, 1}, {[]string{names.AgentNamespace, names.AgentNamespace}, 2}, {[]string{"default"}, 0},
	} {
		found, err := origin.Agent(t.Context(), c, tc.namespaces...)
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		if found != nil {
			runs = len(found.Operators) + len(found.Components)
		}
		if runs != tc.runs {
			t.Errorf("in %v: %d Deployments, want %d: %v", tc.namespaces, runs, tc.runs, found)
		}
	}
}
