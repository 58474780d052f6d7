package cleanup_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/cleanup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestRemoveCondition removes a condition, unless it differs from the one that was found.
func TestRemoveCondition(t *testing.T) {
	t.Parallel()
	const kind = names.ConditionTokenInfrastructureReady
	for name, tc := range map[string]struct {
		change func(*addonv1beta1.ManagedClusterAddOn)
		stays  bool
	}{
		"as it was found": {func(*addonv1beta1.ManagedClusterAddOn) {}, false},
		"another message": {func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.Conditions[0].Message = "new" }, true},
		"another condition": {func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = append(a.Status.Conditions, metav1.Condition{Type: "Other", Status: metav1.ConditionTrue})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a1"}}
			obj.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Message: "old"}}
			c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(obj).WithStatusSubresource(obj).Build()
			found := get(t, c, obj)
			live := found.DeepCopy()
			tc.change(live)
			if err := c.Status().Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			if err := cleanup.Remove(t.Context(), c, inventory.Orphan{Object: found, Condition: kind}); err != nil {
				t.Fatal(err)
			}
			after := get(t, c, obj).Status.Conditions
			if stays := apimeta.FindStatusCondition(after, kind) != nil; stays != tc.stays {
				t.Errorf("the conditions are %v", after)
			}
			if len(after) < len(live.Status.Conditions)-1 {
				t.Errorf("another condition is removed, too: %v", after)
			}
		})
	}
}

// TestRemoveGoneObject shows that an object that no longer exists is no error.
func TestRemoveGoneObject(t *testing.T) {
	t.Parallel()
	c := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	gone := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a1"}}
	if err := cleanup.Remove(t.Context(), c, inventory.Orphan{Object: gone}); err != nil {
		t.Error(err)
	}
}

// TestChangedError keeps the conflict.
func TestChangedError(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewConflict(corev1.Resource("serviceaccounts"), "a1", errors.New("other version"))
	if err := error(&cleanup.ChangedError{Cause: conflict}); !apierrors.IsConflict(err) {
		t.Errorf("%v is no conflict", err)
	}
}

func get(t *testing.T, c client.Client, obj client.Object) *addonv1beta1.ManagedClusterAddOn {
	t.Helper()
	live := &addonv1beta1.ManagedClusterAddOn{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), live); err != nil {
		t.Fatal(err)
	}
	return live
}
