package scheme_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
)

// TestNew: each scheme knows the kinds of all groups, and is the caller's own.
func TestNew(t *testing.T) {
	t.Parallel()
	s := scheme.New()
	for _, object := range []runtime.Object{
		&corev1.Secret{}, &rbacv1.ClusterRole{}, &clusterv1.ManagedCluster{}, &addonv1beta1.ManagedClusterAddOn{}, &operatorv1.Klusterlet{},
	} {
		if _, _, err := s.ObjectKinds(object); err != nil {
			t.Error(err)
		}
	}
	if s == scheme.New() {
		t.Error("two callers share a scheme")
	}
}
