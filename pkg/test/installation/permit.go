package installation

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Permit gives the token authorizer what `kubectl ocm exchange rbac` prints for
// rules that lead to ServiceAccounts of a namespace of the hub; the account
// "{name}" is every one of it.
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
}
