package bootstrap_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// TestATokenNeedsEveryRightOfAnAgent: a token that lacks any one of the rights
// is refused before an agent fails with it, and the error names that right.
func TestATokenNeedsEveryRightOfAnAgent(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	crds, err := manifests.RenderHubCRDs(manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace})
	installation.Some(t, admin, crds, err, installation.CRD)

	all := map[string][]string{
		clusterv1.GroupName + "/managedclusters":                 {"create", "get"},
		certificatesv1.GroupName + "/certificatesigningrequests": {"create", "get", "list", "watch"},
	}
	// rules are all rights but one.
	rules := func(without string) []rbacv1.PolicyRule {
		var out []rbacv1.PolicyRule
		for target, verbs := range all {
			group, resource, _ := strings.Cut(target, "/")
			verbs = slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return verb+" "+resource+"."+group == without })
			out = append(out, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs})
		}
		return out
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "joiner"}, Rules: rules("")}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "joiner"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "joiner"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "joiner"}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	joiner := cp.ClientFor(t, cp.ConfigFor(t, "joiner"))
	eventually := func(t *testing.T, what string, try func() error) {
		t.Helper()
		await.Success(t, time.Minute, what, func(context.Context) error { return try() })
	}
	check := func() error {
		return bootstrap.CheckAccess(t.Context(), joiner, bootstrap.Token{}, clock.RealClock{}.Now())
	}
	eventually(t, "the token has all rights", check)
	for target, verbs := range all {
		group, resource, _ := strings.Cut(target, "/")
		for _, verb := range verbs {
			missing := verb + " " + resource + "." + group
			role.Rules = rules(missing)
			if err := admin.Update(t.Context(), role); err != nil {
				t.Fatal(err)
			}
			// The API server's authorizer learns of it a moment later.
			eventually(t, "a token that may not "+missing+" is refused", func() error {
				err := check()
				if kindOf(err) != bootstrap.Forbidden || !strings.Contains(err.Error(), "it may not "+missing) ||
					strings.Contains(err.Error(), ",") {
					return fmt.Errorf("it says %v", err) //nolint:errorlint // it may be nil
				}
				return nil
			})
		}
	}
}
