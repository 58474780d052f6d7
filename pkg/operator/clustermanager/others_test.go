package clustermanager_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

// TestOthersObjectsAreNotPruned has objects of an upstream hub on the cluster,
// which carry the label that our operator prunes by.
func TestOthersObjectsAreNotPruned(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	upstream.Hub(t, h.admin)
	h.run(t, nil)
	h.expectCondition(t, "Applied", metav1.ConditionTrue, operatorv1.ReasonClusterManagerApplied)
	for _, others := range []struct {
		obj  client.Object
		name string
	}{
		{&appsv1.Deployment{}, "cluster-manager-placement-controller"},
		{&appsv1.Deployment{}, "cluster-manager-work-webhook"},
		{&corev1.Service{}, "cluster-manager-work-webhook"},
		{&corev1.ServiceAccount{}, "work-webhook-sa"},
		{&rbacv1.ClusterRole{}, "open-cluster-management:cluster-manager-work-webhook"},
	} {
		key := client.ObjectKey{Namespace: names.HubNamespace, Name: others.name}
		if _, isRole := others.obj.(*rbacv1.ClusterRole); isRole {
			key.Namespace = ""
		}
		if err := h.admin.Get(t.Context(), key, others.obj); err != nil {
			t.Errorf("%T: %v", others.obj, err)
		} else if !others.obj.GetDeletionTimestamp().IsZero() {
			t.Errorf("%T %s is being deleted", others.obj, key)
		}
	}
}
