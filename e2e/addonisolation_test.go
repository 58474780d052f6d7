package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestAddOnIsolation shows that an add-on's token can do what is bound to the
// add-on's subject and nothing else.
func TestAddOnIsolation(t *testing.T) {
	t.Parallel()
	a := installSample(t, "e2e-bound")
	a.add(t, "cluster2")
	a.awaitToken(t, "cluster2", "")
	addon := newClient(t, a.config(t, "cluster2"))
	bound := authorizationv1.ResourceRule{
		Verbs: []string{"get", "create", "patch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{a.name},
	}
	own := access{resource: "configmaps", namespace: "cluster2", name: a.name}
	eventually(t, "the manager binds the subject", func(context.Context) error {
		own.verb = "patch"
		if !own.allowed(t, addon) {
			return fmt.Errorf("%+v is refused", own)
		}
		return nil
	})

	t.Run("rules", func(t *testing.T) {
		// What every ServiceAccount may do is no right of the add-on.
		config := fleet.config(t, "hub")
		config.Impersonate = rest.ImpersonationConfig{
			UserName: names.ServiceAccountUser("cluster2", "e2e-nobody"),
			Groups:   []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:cluster2"},
		}
		nobody := newClient(t, config)
		for _, namespace := range []string{"cluster2", "cluster1", "default", "kube-system", names.HubNamespace, names.OperatorNamespace} {
			want := rules(t, nobody, namespace)
			if namespace == "cluster2" {
				want.ResourceRules = append(want.ResourceRules, bound)
			}
			sorted := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
			if diff := cmp.Diff(want, rules(t, addon, namespace), sorted); diff != "" {
				t.Errorf("rules in %s (-want +got):\n%s", namespace, diff)
			}
		}
	})
	t.Run("matrix", func(t *testing.T) {
		for _, verb := range verbs() {
			own.verb = verb
			if slices.Contains(bound.Verbs, verb) {
				wantAllowed(t, addon, own)
			} else {
				wantDenied(t, addon, own)
			}
			for _, other := range others(a.name) {
				other.verb = verb
				wantDenied(t, addon, other)
			}
		}
		for _, verb := range []string{"impersonate", "escalate", "bind", "approve", "sign"} {
			wantDenied(t, addon, access{verb: verb, group: "*", resource: "*"})
		}
	})
	t.Run("tokens", func(t *testing.T) {
		if err := requestToken(t, addon, "cluster2", names.AddOnServiceAccount("cluster2", a.name)); !apierrors.IsForbidden(err) {
			t.Errorf("an add-on's token brings another one: %v", err)
		}
	})
}

// others is what an add-on of cluster2 has no business with.
func others(name string) []access {
	list := []access{
		{resource: "namespaces", name: "cluster2"},
		{resource: "nodes"},
		{resource: "configmaps", namespace: "cluster2", name: "another"},
		{group: names.GroupCluster, resource: "managedclusters", name: "cluster2"},
		{group: names.GroupCertificates, resource: "certificatesigningrequests"},
		{group: names.RegisterGroup, resource: "managedclusters", subresource: "clientcertificates", name: "cluster2"},
		{group: rbacv1.GroupName, resource: "clusterroles"},
	}
	for _, namespace := range []string{"cluster1", names.HubNamespace, names.OperatorNamespace, "kube-system", "default"} {
		list = append(list, access{resource: "configmaps", namespace: namespace, name: name})
	}
	for _, namespace := range []string{"cluster1", "cluster2", names.HubNamespace, "kube-system"} {
		for _, a := range []access{
			{resource: "secrets"},
			{resource: "pods"},
			{resource: "events"},
			{resource: "serviceaccounts"},
			{resource: "serviceaccounts", subresource: "token"},
			{group: "coordination.k8s.io", resource: "leases"},
			{group: addonv1beta1.GroupName, resource: "managedclusteraddons"},
			{group: addonv1beta1.GroupName, resource: "managedclusteraddons", subresource: "status"},
			{group: "work.open-cluster-management.io", resource: "manifestworks"},
			{group: rbacv1.GroupName, resource: "roles"},
			{group: rbacv1.GroupName, resource: "rolebindings"},
		} {
			a.namespace = namespace
			list = append(list, a)
		}
	}
	return list
}

// rules is what the authorizer tells a user about itself.
func rules(t *testing.T, c client.Client, namespace string) authorizationv1.SubjectRulesReviewStatus {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status
}

// requestToken asks for a token of a ServiceAccount.
func requestToken(t *testing.T, c client.Client, namespace, name string) error {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return c.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{})
}

// TestTokensOfOthers tries to get, with the credential of a cluster's agent, a
// token of anybody but that cluster's own add-ons: by asking for it, and by
// naming another ServiceAccount in an add-on's status.
func TestTokensOfOthers(t *testing.T) {
	t.Parallel()
	a := installSample(t, "e2e-minted")
	hub := a.hub
	for _, cluster := range []string{"cluster1", "cluster2"} {
		a.add(t, cluster)
	}
	a.awaitToken(t, "cluster2", "")
	victim := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: "e2e-victim"}}
	if err := hub.Create(t.Context(), victim); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), victim) })

	agent, other := newClient(t, fleet.agentConfig(t, "cluster2")), newClient(t, fleet.agentConfig(t, "cluster1"))
	own := names.AddOnServiceAccount("cluster2", a.name)
	if err := requestToken(t, agent, "cluster2", own); err != nil {
		t.Fatalf("for its own add-on: %v", err)
	}
	if err := requestToken(t, other, "cluster2", own); !apierrors.IsForbidden(err) {
		t.Errorf("another cluster's agent, for an add-on of cluster2: %v", err)
	}
	// cluster1's add-ons have certificates, so nobody may request tokens there.
	if err := requestToken(t, other, "cluster1", names.AddOnServiceAccount("cluster1", a.name)); !apierrors.IsForbidden(err) {
		t.Errorf("for an add-on with driver csr: %v", err)
	}
	accounts := everyAccount(t, hub)
	wantNoTokens := func(t *testing.T) {
		t.Helper()
		for _, account := range accounts {
			isAddOn := account.Namespace == "cluster2" && strings.HasPrefix(account.Name, "cluster2-")
			if err := requestToken(t, agent, account.Namespace, account.Name); !isAddOn && !apierrors.IsForbidden(err) {
				t.Errorf("a token of %s/%s: %v", account.Namespace, account.Name, err)
			}
		}
	}
	t.Run("by asking", wantNoTokens)
	t.Run("by naming another in the status", func(t *testing.T) {
		for _, account := range []client.ObjectKey{
			client.ObjectKeyFromObject(victim),
			{Namespace: "cluster2", Name: "default"},
			{Namespace: "cluster1", Name: names.AddOnServiceAccount("cluster1", a.name)},
			{Namespace: "kube-system", Name: "namespace-controller"},
			{Namespace: names.HubNamespace, Name: "registration-controller-sa"},
		} {
			a.claim(t, agent, names.ServiceAccountUser(account.Namespace, account.Name))
		}
		// The agent puts it right, and the hub has then seen all of it.
		eventually(t, "the registration is the right one again", func(ctx context.Context) error {
			r, err := a.kubeClient(ctx, "cluster2")
			if err == nil && r.Subject.User != names.ServiceAccountUser("cluster2", own) {
				err = fmt.Errorf("the subject is %s", r.Subject.User)
			}
			return err
		})
		if err := hub.Delete(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: names.AddOnTokenRole(a.name)}}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the hub makes the Role again, for the right one", func(context.Context) error {
			return requestToken(t, agent, "cluster2", own)
		})
		wantNoTokens(t)
	})
}

// claim writes, as a compromised agent would, that the add-on is somebody else.
func (a *addOn) claim(t *testing.T, agent client.Client, user string) {
	t.Helper()
	eventually(t, "the agent writes the status of its add-on", func(ctx context.Context) error {
		var obj addonv1beta1.ManagedClusterAddOn
		if err := agent.Get(ctx, client.ObjectKey{Namespace: "cluster2", Name: a.name}, &obj); err != nil {
			return err
		}
		for i := range obj.Status.Registrations {
			if r := &obj.Status.Registrations[i]; r.Type == addonv1beta1.KubeClient {
				forged := registration("token", user)
				r.KubeClient = &forged
			}
		}
		if err := agent.Status().Update(ctx, &obj); !refused(err) {
			return err
		}
		return nil
	})
}

// everyAccount is every ServiceAccount of the hub at this moment.
func everyAccount(t *testing.T, hub client.Client) []corev1.ServiceAccount {
	t.Helper()
	var list corev1.ServiceAccountList
	if err := hub.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
