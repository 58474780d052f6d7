package manifest_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
)

// TestOrderOfApplying has every kind that has a rank, each line after the one before.
func TestOrderOfApplying(t *testing.T) {
	t.Parallel()
	lines := [][]string{
		{"CustomResourceDefinition", "Namespace", "PersistentVolume", "PodSecurityPolicy", "PriorityClass", "StorageClass"},
		{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
		{"LimitRange", "NetworkPolicy", "PodDisruptionBudget", "ResourceQuota", "ServiceAccount"},
		{"ConfigMap", "PersistentVolumeClaim", "Secret"},
		{"Service"},
		{"CronJob", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job", "Pod", "ReplicaSet", "ReplicationController", "StatefulSet"},
		{"APIService", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"},
		{"Widget", "Ingress"},
	}
	var want, raw []string
	for _, line := range lines {
		want = append(want, line...)
	}
	want = append(want, "undecodable")
	raw = append(raw, `{`)
	for _, line := range slices.Backward(lines) {
		for _, kind := range line {
			raw = append(raw, object(t, "example.com/v1", kind, "ns", "a"))
		}
	}
	decoded := manifest.Decode(workOf(raw...))
	var got []string
	for _, m := range manifest.Sort(decoded) {
		if m.Object == nil {
			got = append(got, "undecodable")
			continue
		}
		got = append(got, m.Object.GetKind())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, m := range decoded {
		if m.Ordinal != i {
			t.Fatal("the manifests that were passed in changed their order")
		}
	}
}

func TestManifestsOfOneRankStayInTheOrderOfTheSpec(t *testing.T) {
	t.Parallel()
	decoded := manifest.Decode(workOf(
		object(t, "example.com/v1", "Widget", "", "z"), object(t, "v1", "Secret", "ns", "z"),
		object(t, "v1", "ConfigMap", "ns", "y"), object(t, "v1", "Secret", "ns", "a"), object(t, "example.com/v1", "Gadget", "", "a"),
	))
	var got []int
	for _, m := range manifest.Sort(decoded) {
		got = append(got, m.Ordinal)
	}
	if want := []int{1, 2, 3, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
