package manifests_test

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// TestTheTokenAuthorizerReadsOnlyKeys: with the rights of the manifests it reads
// what clusters publish about their keys, and nothing else that lies beside it.
func TestTheTokenAuthorizerReadsOnlyKeys(t *testing.T) {
	t.Parallel()
	cp := controlplane.Start(t)
	admin := cp.Client(t)
	installation.Hub(t, admin, manifests.Hub{TokenAuthorizer: &manifests.TokenAuthorizer{}})
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		verb, resource, namespace, name string
		allowed                         bool
	}{
		{verb: "list", resource: "configmaps", name: names.IssuerConfigMap, allowed: true},
		{verb: "watch", resource: "configmaps", name: names.IssuerConfigMap, allowed: true},
		{verb: "list", resource: "configmaps"},
		{verb: "watch", resource: "configmaps"},
		{verb: "list", resource: "configmaps", namespace: "c1"},
		{verb: "get", resource: "configmaps", namespace: "c1", name: "other"},
		{verb: "get", resource: "configmaps", namespace: names.HubNamespace, name: "other"},
		{verb: "update", resource: "configmaps", namespace: "c1", name: names.IssuerConfigMap},
		{verb: "list", resource: "secrets"},
		{verb: "list", resource: "secrets", namespace: names.HubNamespace},
		{verb: "create", resource: "serviceaccounts/token", namespace: "c1", name: "default"},
		{verb: "create", resource: "serviceaccounts/token", namespace: names.HubNamespace, name: names.TokenAuthorizer},
	} {
		attributes := &authorizationv1.ResourceAttributes{Verb: tc.verb, Resource: tc.resource, Namespace: tc.namespace, Name: tc.name}
		if tc.resource == "serviceaccounts/token" {
			attributes.Resource, attributes.Subresource = "serviceaccounts", "token"
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               names.ServiceAccountUser(names.HubNamespace, names.TokenAuthorizer),
			Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + names.HubNamespace, "system:authenticated"},
			ResourceAttributes: attributes,
		}}
		if err := admin.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != tc.allowed {
			t.Errorf("%s %s %q in %q: allowed %v", tc.verb, tc.resource, tc.name, tc.namespace, review.Status.Allowed)
		}
	}
}
