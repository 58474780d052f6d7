package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// conditionWebhook is the condition of the ClusterManager that tells whether
// add-ons are converted.
const conditionWebhook = "HubAddOnWebhookDegraded"

// TestConversion uses add-ons in the old version of their API, and takes the
// pods that convert them away. It runs alone, because others use the old
// version as well.
func TestConversion(t *testing.T) {
	hub := fleet.client(t, "hub")
	eventually(t, "the webhook works", webhookIs(hub, metav1.ConditionFalse))
	old := versioned("v1alpha1")
	old.Object["spec"] = map[string]any{"installNamespace": "e2e-elsewhere"}
	if err := hub.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := hub.Delete(context.WithoutCancel(t.Context()), versioned("v1beta1"))
		if client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	read := func(ctx context.Context, version string) (*unstructured.Unstructured, error) {
		obj := versioned(version)
		return obj, hub.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	}
	current, err := read(t.Context(), "v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	if got := current.GetAnnotations()[names.AnnotationInstallNamespace]; got != "e2e-elsewhere" {
		t.Errorf("install namespace %q in v1beta1", got)
	}

	pods := []client.DeleteAllOfOption{
		client.InNamespace(names.HubNamespace),
		client.MatchingLabels{"app": names.HubAddOnWebhookDeployment(names.ClusterManagerName)},
	}
	if err := hub.DeleteAllOf(t.Context(), &corev1.Pod{}, pods...); err != nil {
		t.Fatal(err)
	}
	// With or without a webhook in this moment, the stored version works.
	change := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"meanwhile"}}}`))
	if err := hub.Patch(t.Context(), current, change); err != nil {
		t.Errorf("change in v1beta1: %v", err)
	}
	eventually(t, "the old version works again", func(ctx context.Context) error {
		obj, err := read(ctx, "v1alpha1")
		if err != nil {
			return err
		}
		namespace, _, err := unstructured.NestedString(obj.Object, "spec", "installNamespace")
		if err != nil || namespace != "e2e-elsewhere" || obj.GetLabels()["changed"] != "meanwhile" {
			return errors.Join(err, fmt.Errorf("the add-on is %v", obj.Object))
		}
		return nil
	})
	eventually(t, "the webhook works again", webhookIs(hub, metav1.ConditionFalse))
}

func versioned(version string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAPIVersion("addon.open-cluster-management.io/" + version)
	obj.SetKind("ManagedClusterAddOn")
	obj.SetNamespace("cluster1")
	obj.SetName("e2e-conversion")
	return obj
}

func webhookIs(hub client.Client, status metav1.ConditionStatus) func(context.Context) error {
	return func(ctx context.Context) error {
		var manager operatorv1.ClusterManager
		if err := hub.Get(ctx, client.ObjectKey{Name: names.ClusterManagerName}, &manager); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(manager.Status.Conditions, conditionWebhook)
		if c == nil {
			return errors.New("there is no condition " + conditionWebhook)
		}
		if c.Status != status {
			return fmt.Errorf("%s is %s: %s", conditionWebhook, c.Status, c.Message)
		}
		return nil
	}
}
