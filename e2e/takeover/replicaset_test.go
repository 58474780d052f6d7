package takeover_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
)

// set is the name of a ManifestWorkReplicaSet, of its works and of what they deploy.
const set = "set"

// createSet creates a ManifestWorkReplicaSet and what a scheduler decided for it.
func createSet(t *testing.T, hub client.Client) {
	t.Helper()
	key := metav1.ObjectMeta{Namespace: "default", Name: set}
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: key}
	decision.Labels = map[string]string{clusterv1beta1.PlacementLabel: set}
	replicas := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: key}
	replicas.Spec.ManifestWorkTemplate = work("", config(set)).Spec
	replicas.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{
		Name: set, RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All},
	}}
	for _, obj := range []client.Object{&clusterv1beta1.Placement{ObjectMeta: key}, decision, replicas} {
		if err := hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: cluster}}
	if err := hub.Status().Update(t.Context(), decision); err != nil {
		t.Fatal(err)
	}
	awaitApplied(t, hub, set)
}

// extendSet gives a set one more object, which its controller has to bring to the work.
func extendSet(t *testing.T, hub, managed client.Client) {
	t.Helper()
	var replicas workv1alpha1.ManifestWorkReplicaSet
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: set}, &replicas); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(replicas.DeepCopy())
	replicas.Spec.ManifestWorkTemplate = work("", config(set), config("more")).Spec
	if err := hub.Patch(t.Context(), &replicas, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the set's new object is on the cluster, and the set says so", func(ctx context.Context) error {
		if err := managed.Get(ctx, client.ObjectKey{Namespace: "default", Name: "more"}, &corev1.ConfigMap{}); err != nil {
			return err
		}
		if err := hub.Get(ctx, client.ObjectKeyFromObject(&replicas), &replicas); err != nil {
			return err
		}
		if replicas.Status.Summary.Total != 1 || replicas.Status.Summary.Applied != 1 {
			return fmt.Errorf("%+v", replicas.Status)
		}
		return nil
	})
}

// setState is what of a set must stay.
func setState(t *testing.T, hub, managed client.Client) string {
	t.Helper()
	var w workv1.ManifestWork
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: set}, &w); err != nil {
		t.Fatal(err)
	}
	var c corev1.ConfigMap
	if err := managed.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: set}, &c); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(w.UID, " ", w.Labels, " ", c.UID, " ", c.ResourceVersion)
}

// withWorkController adds OCM's controller of ManifestWorkReplicaSets, which it runs with
// the feature gate only, to the objects of its hub.
func withWorkController(t *testing.T, objs []client.Object) []client.Object {
	t.Helper()
	for _, obj := range objs {
		u, ok := obj.DeepCopyObject().(*unstructured.Unstructured)
		if !ok || u.GetName() != "cluster-manager-placement-controller" || u.GetKind() != "Deployment" {
			continue
		}
		u.SetName("cluster-manager-work-controller")
		labels := map[string]string{"app": "clustermanager-work-controller"}
		_ = unstructured.SetNestedStringMap(u.Object, labels, "spec", "selector", "matchLabels")
		_ = unstructured.SetNestedStringMap(u.Object, labels, "spec", "template", "metadata", "labels")
		containers := []any{map[string]any{
			"name": "work-controller", "image": "registry.example.com/open-cluster-management/work:v1.3.1", "args": []any{"/work", "manager"},
		}}
		_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
		return append(objs, u)
	}
	t.Fatal("the hub of OCM has no placement controller")
	return nil
}
