package installation

import (
	"context"
	"errors"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// Permit gives the token authorizer what `kubectl ocm exchange rbac` prints for
// rules that lead to ServiceAccounts of a namespace of the hub; the account
// "{name}" is every one of it. It returns when the API server, whose authorizer
// follows its watch, allows it.
func Permit(tb testing.TB, admin client.Client, namespace string, accounts ...string) {
	tb.Helper()
	spec := policy.Spec{Cluster: "cluster1", Path: "clusters[0]"}
	for _, name := range accounts {
		spec.Allow = append(spec.Allow, v1alpha1.Rule{MapTo: v1alpha1.Mapping{Namespace: namespace, Name: name}})
	}
	permissions := policy.RBAC([]policy.Spec{spec}, policy.Known{
		Self: policy.Account{Namespace: names.HubNamespace, Name: names.TokenAuthorizer},
	})
	if len(permissions.Roles) != 1 {
		tb.Fatalf("permissions for %s: %+v", namespace, permissions)
	}
	Create(tb, admin, &permissions.Roles[0], &permissions.Bindings[0])
	await.Success(tb, await.Patience, "the API server allows what was permitted in "+namespace, func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               names.ServiceAccountUser(names.HubNamespace, names.TokenAuthorizer),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "watch", Resource: "serviceaccounts"},
		}}
		if err := admin.Create(ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return errors.New(review.Status.Reason)
		}
		return nil
	})
}
