package clustermanager_test

import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
)

// TestSecondClusterManagerIsRefused also has one that an earlier release had
// applied, which goes without taking the hub with it.
func TestSecondClusterManagerIsRefused(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	op := h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	create := func(name string, finalizers ...string) *operatorv1.ClusterManager {
		t.Helper()
		cm := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}
		if err := h.admin.Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		return cm
	}
	applied := func(cm *operatorv1.ClusterManager, reason string) {
		t.Helper()
		expectObject(t, h, client.ObjectKeyFromObject(cm), cm, func(cm *operatorv1.ClusterManager) string {
			if c := apimeta.FindStatusCondition(cm.Status.Conditions, "Applied"); c == nil || c.Reason != reason {
				return "Applied is not " + reason
			}
			return ""
		})
	}
	remove := func(cm *operatorv1.ClusterManager) {
		t.Helper()
		if err := h.admin.Delete(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) string {
			if err := h.admin.Get(ctx, client.ObjectKeyFromObject(cm), cm); !apierrors.IsNotFound(err) {
				return cm.Name + " is still there"
			}
			return ""
		})
	}
	before, second := create("applied-before", names.FinalizerClusterManager), create("second")
	applied(before, clustermanager.ReasonAnotherClusterManager)
	applied(second, clustermanager.ReasonAnotherClusterManager)
	expectQuiet(t, op)
	remove(before)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := h.admin.Get(t.Context(), client.ObjectKey{Name: "managedclusters.cluster.open-cluster-management.io"}, crd); err != nil || crd.DeletionTimestamp != nil {
		t.Fatalf("the hub's CRD: %v", err)
	}
	if got := crd.Labels[names.LabelCreatedByClusterManager]; got != names.ClusterManagerName {
		t.Errorf("it is of %s", got)
	}
	remove(h.clusterManager(t))
	applied(second, operatorv1.ReasonClusterManagerApplied)
}
