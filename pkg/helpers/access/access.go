package access

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Right is a permission, as an access review asks for it.
type Right struct {
	Verb string
	// Resource may have a subresource, after a slash.
	Resource schema.GroupResource
	// Namespace is empty for all of them, and for cluster-scoped resources.
	Namespace string
	// Name is empty for all objects.
	Name string
}

// String returns the right as a phrase: create deployments.apps in namespace x, or
// get secrets "y" in namespace x.
func (r Right) String() string {
	s := r.Verb + " " + r.Resource.String()
	if r.Name != "" {
		s += fmt.Sprintf(" %q", r.Name)
	}
	if r.Namespace != "" {
		s += " in namespace " + r.Namespace
	}
	return s
}

// Phrase joins rights in a sentence that grants them: get secrets "y" in namespace x, and
// list pods in namespace x.
func Phrase(rights []Right) string {
	words := make([]string, len(rights))
	for i, right := range rights {
		words[i] = right.String()
	}
	return strings.Join(words, ", and ")
}

// Allowed reports whether a ServiceAccount has a permission, as the API server of c decides.
func Allowed(ctx context.Context, c client.Client, account types.NamespacedName, request authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               names.ServiceAccountUser(account.Namespace, account.Name),
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"},
		ResourceAttributes: &request,
	}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}

// Missing returns those of the rights that the user of c lacks.
func Missing(ctx context.Context, c client.Client, rights []Right) ([]Right, error) {
	var missing []Right
	for _, r := range rights {
		resource, subresource, _ := strings.Cut(r.Resource.Resource, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: r.Resource.Group, Resource: resource, Subresource: subresource, Verb: r.Verb, Namespace: r.Namespace, Name: r.Name,
			},
		}}
		if err := c.Create(ctx, review); err != nil {
			return nil, fmt.Errorf("access review: %w", err)
		}
		if !review.Status.Allowed {
			missing = append(missing, r)
		}
	}
	return missing, nil
}
