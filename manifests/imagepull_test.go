package manifests_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// TestThePullSecretControllerStaysInItsNamespaces: with namespaces named it may do
// nothing anywhere else, and of ConfigMaps it reads one.
func TestThePullSecretControllerStaysInItsNamespaces(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	objs, err := manifests.RenderImagePull(manifests.ImagePull{
		Controller: manifests.Component{Pod: pod()},
		Namespaces: []string{"default"}, ConfigMap: types.NamespacedName{Namespace: "kube-public", Name: "registries"},
	})
	if err != nil {
		t.Fatal(err)
	}
	installation.Apply(t, admin, "test", objs)
	account := types.NamespacedName{Namespace: names.ImagePullNamespace, Name: names.ImagePullServiceAccount}
	for _, tc := range []right{
		{verb: "list", resource: "secrets", namespace: "default", allowed: true},
		{verb: "patch", resource: "serviceaccounts", namespace: "default", name: "a", allowed: true},
		{verb: "create", resource: "serviceaccounts/token", namespace: "default", name: "a", allowed: true},
		{verb: "create", resource: "events.events.k8s.io", namespace: "default", allowed: true},
		{verb: "watch", resource: "configmaps", namespace: "kube-public", name: "registries", allowed: true},
		{verb: "update", resource: "leases.coordination.k8s.io", namespace: names.ImagePullNamespace, name: names.ImagePullLease, allowed: true},
		{verb: "list", resource: "secrets"},
		{verb: "list", resource: "serviceaccounts"},
		{verb: "get", resource: "namespaces", name: "default"},
		{verb: "list", resource: "secrets", namespace: "kube-system"},
		{verb: "create", resource: "serviceaccounts/token", namespace: "kube-system", name: "a"},
		{verb: "create", resource: "serviceaccounts/token", namespace: names.ImagePullNamespace, name: "a"},
		{verb: "watch", resource: "configmaps", namespace: "kube-public"},
		{verb: "get", resource: "configmaps", namespace: "default", name: "registries"},
		{verb: "update", resource: "leases.coordination.k8s.io", namespace: names.ImagePullNamespace, name: "other"},
		{verb: "get", resource: "secrets", namespace: names.ImagePullNamespace, name: names.ImagePullSecret},
	} {
		tc.check(t, admin, account)
	}
}
