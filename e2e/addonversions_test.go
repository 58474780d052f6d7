package e2e_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestAddOnVersions lets a client of the older add-on API install an add-on. It
// registers like any other, and the client reads in its own words how.
func TestAddOnVersions(t *testing.T) {
	t.Parallel()
	a := installSample(t, "e2e-older")
	managed := fleet.client(t, "cluster2")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "e2e-older"}}
	if err := managed.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	older := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"installNamespace": namespace.Name}}}
	older.SetGroupVersionKind(schema.GroupVersionKind{Group: addonv1beta1.GroupName, Version: "v1alpha1", Kind: "ManagedClusterAddOn"})
	older.SetNamespace("cluster2")
	older.SetName(a.name)
	if err := a.hub.Create(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.hub.Delete(context.WithoutCancel(t.Context()), older) })

	eventually(t, "the credential is where the older version says", func(ctx context.Context) error {
		var secret corev1.Secret
		key := client.ObjectKey{Namespace: namespace.Name, Name: names.AddOnHubKubeconfigSecret(a.name)}
		return managed.Get(ctx, key, &secret)
	})
	obj, err := a.get(t.Context(), "cluster2")
	if err != nil {
		t.Fatal(err)
	}
	if got := obj.Annotations[names.AnnotationInstallNamespace]; got != namespace.Name {
		t.Errorf("the newer version says %q, want %q", got, namespace.Name)
	}
	eventually(t, "the older version tells of the registration", func(ctx context.Context) error {
		if err := a.hub.Get(ctx, client.ObjectKeyFromObject(older), older); err != nil {
			return err
		}
		driver, _, _ := unstructured.NestedString(older.Object, "status", "kubeClientDriver")
		registrations, _, _ := unstructured.NestedSlice(older.Object, "status", "registrations")
		if driver != "token" || len(registrations) != 1 {
			return fmt.Errorf("status %v", older.Object["status"])
		}
		r, _ := registrations[0].(map[string]any)
		user, _, _ := unstructured.NestedString(r, "subject", "user")
		want := names.ServiceAccountUser("cluster2", names.AddOnServiceAccount("cluster2", a.name))
		if r["signerName"] != "kubernetes.io/kube-apiserver-client" || user != want {
			return fmt.Errorf("registration %v", r)
		}
		return nil
	})
}
