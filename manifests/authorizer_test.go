package manifests_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// TestTheTokenAuthorizerReadsOnlyKeys: with the rights of the manifests it reads
// what clusters publish about their keys, and nothing else that lies beside it.
func TestTheTokenAuthorizerReadsOnlyKeys(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	installation.Hub(t, admin, manifests.Hub{TokenAuthorizer: &manifests.TokenAuthorizer{}})
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}); err != nil {
		t.Fatal(err)
	}
	account := types.NamespacedName{Namespace: names.HubNamespace, Name: names.TokenAuthorizer}
	for _, tc := range []right{
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
		tc.check(t, admin, account)
	}
}

// right is what an account may do, or may not.
type right struct {
	verb, resource, namespace, name string
	allowed                         bool
}

// check asks the API server.
func (r right) check(t *testing.T, admin client.Client, account types.NamespacedName) {
	t.Helper()
	attributes := &authorizationv1.ResourceAttributes{Verb: r.verb, Namespace: r.namespace, Name: r.name}
	resource := schema.ParseGroupResource(r.resource)
	attributes.Group = resource.Group
	attributes.Resource, attributes.Subresource, _ = strings.Cut(resource.Resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               names.ServiceAccountUser(account.Namespace, account.Name),
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"},
		ResourceAttributes: attributes,
	}}
	// The API server takes a moment to see a new role.
	await.Completion(t, time.Minute, func(ctx context.Context) string {
		asked := review.DeepCopy()
		if err := admin.Create(ctx, asked); err != nil {
			return err.Error()
		}
		if asked.Status.Allowed != r.allowed {
			return fmt.Sprintf("%s %s %q in %q: allowed %v", r.verb, r.resource, r.name, r.namespace, asked.Status.Allowed)
		}
		return ""
	})
}
