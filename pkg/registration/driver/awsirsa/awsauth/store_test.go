package awsauth_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// TestStore: a ConfigMap that is not there, or cannot be read, is left alone.
func TestStore(t *testing.T) {
	t.Parallel()
	admin := controlplane.Lease(t).Client(t)
	store := awsauth.Store{Live: admin, Client: admin}
	if err := store.Remove(t.Context(), role); err != nil {
		t.Errorf("removed from nothing: %v", err)
	}
	if err := store.Ensure(t.Context(), line()); err == nil {
		t.Error("added to nothing")
	}
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: awsauth.Namespace, Name: awsauth.Name, Labels: map[string]string{"a": "b"}},
		Data:       map[string]string{"mapRoles": "- rolearn: a\n groups: b\n", "mapUsers": " x"}, BinaryData: map[string][]byte{"b": {1}},
	}
	if err := admin.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	get := func() *corev1.ConfigMap {
		got := &corev1.ConfigMap{}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(stored), got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if err := store.Ensure(t.Context(), line()); !errors.Is(err, awsauth.ErrUnreadable) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(stored.Data, get().Data); diff != "" || get().ResourceVersion != stored.ResourceVersion {
		t.Errorf("it was written:\n%s", diff)
	}
	stored.Data["mapRoles"] = nodes
	if err := admin.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := store.Ensure(t.Context(), line()); err != nil {
			t.Fatal(err)
		}
	}
	got := get()
	want := map[string]string{"mapRoles": nodes + added, "mapUsers": " x"}
	if diff := cmp.Diff(want, got.Data); diff != "" || got.Labels["a"] != "b" || len(got.BinaryData) != 1 {
		t.Errorf("got %+v\n%s", got, diff)
	}
}
