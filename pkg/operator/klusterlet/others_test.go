package klusterlet_test

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

// TestOthersObjectsAreNotPruned has objects of an upstream agent on the cluster,
// which carry the labels that our operator prunes by.
func TestOthersObjectsAreNotPruned(t *testing.T) {
	t.Parallel()
	c := install(t, nil)
	upstream.Klusterlet(t, c.client, "c1")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "open-cluster-management-theirs", Labels: map[string]string{names.LabelKlusterlet: names.KlusterletName},
	}}
	if err := c.client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	c.run(t, nil)
	c.awaitCondition(t, "Applied", operatorv1.ReasonKlusterletApplied)
	for _, others := range []struct {
		obj client.Object
		key client.ObjectKey
	}{
		{&appsv1.Deployment{}, client.ObjectKey{Namespace: names.AgentNamespace, Name: upstream.WorkAgent}},
		{&corev1.ServiceAccount{}, client.ObjectKey{Namespace: names.AgentNamespace, Name: "klusterlet-work-sa"}},
		{&rbacv1.ClusterRole{}, client.ObjectKey{Name: "open-cluster-management:klusterlet-work:agent"}},
		{&corev1.Namespace{}, client.ObjectKeyFromObject(namespace)},
	} {
		if err := c.client.Get(t.Context(), others.key, others.obj); err != nil {
			t.Errorf("%T: %v", others.obj, err)
		} else if !others.obj.GetDeletionTimestamp().IsZero() {
			t.Errorf("%T %s is being deleted", others.obj, others.key)
		}
	}
}
