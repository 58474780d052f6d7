package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestDeniedClusterWithConfiguredKeys: keys that an administrator configured are
// worth what the hub thinks of the cluster, as published ones are.
func TestDeniedClusterWithConfiguredKeys(t *testing.T) {
	fleet.needs(t, "cluster3")
	const cluster, namespace, target = "cluster3", "configured-keys", "configured-keys-workloads"
	hub := fleet.client(t, "hub")
	fleet.leave(t, cluster, cluster)
	t.Cleanup(func() {
		_ = hub.Delete(context.WithoutCancel(t.Context()), &v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: v1alpha1.Name}})
	})
	if err := fleet.joinCluster(t.Context(), cluster, "--publish-issuer=false"); err != nil {
		t.Fatal(err)
	}
	front, token := newHubProxy(t), workloadToken(t, cluster, namespace, "web")
	answers := func(what string, want int) {
		t.Helper()
		eventually(t, what, func(ctx context.Context) error {
			status, err := ask(ctx, front, token)
			if err == nil && status != want {
				err = fmt.Errorf("status %d", status)
			}
			return err
		})
	}
	answers("without keys the cluster's tokens are refused", http.StatusUnauthorized)

	makeAccount(t, hub, target, namespace+".web")
	fleet.must(t, "issuer", "add", cluster, "--context", cluster, "--hub-context", "hub")
	fleet.must(t, "exchange", "allow", "--context", "hub", cluster, namespace+"/web", "--to", target+"/{namespace}.{name}", "--audience", hubAudience)
	kubectl(t, "hub", "apply", "-f", writeFile(t, []byte(fleet.must(t, "exchange", "rbac", "--context", "hub"))))
	answers("configured keys and a rule", http.StatusOK)

	// A cluster that is denied before its agent has joined needs another request.
	kubectl(t, "hub", "wait", "managedcluster/"+cluster, "--for=condition=ManagedClusterJoined", "--timeout=60s")
	fleet.must(t, "accept", "--context", "hub", "--clusters", cluster, "--deny", "--yes")
	answers("a token of a denied cluster", http.StatusUnauthorized)

	fleet.must(t, "accept", "--context", "hub", "--clusters", cluster)
	answers("a token of a cluster that is accepted again", http.StatusOK)
}

// TestStolenAuthorizerCredential: who has a token of the running token authorizers'
// ServiceAccount mints for what the rules allow, and does nothing else with it.
func TestStolenAuthorizerCredential(t *testing.T) {
	const cluster, target = "cluster1", "stolen-credential"
	hub := fleet.client(t, "hub")
	stolen := stolenClient(t, hub)
	makeAccount(t, hub, target, "allowed")
	makeAccount(t, hub, target, "other")
	t.Cleanup(func() {
		_ = hub.Delete(context.WithoutCancel(t.Context()), &v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: v1alpha1.Name}})
	})
	mint := func(namespace, name string) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return stolen.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{})
	}
	if err := mint(target, "allowed"); !apierrors.IsForbidden(err) {
		t.Errorf("minting before there is a rule: %v", err)
	}
	fleet.must(t, "exchange", "allow", "--context", "hub", cluster, "stolen-credential/web", "--to", target+"/allowed", "--audience", hubAudience)
	kubectl(t, "hub", "apply", "-f", writeFile(t, []byte(fleet.must(t, "exchange", "rbac", "--context", "hub"))))
	eventually(t, "minting for what a rule allows", func(context.Context) error { return mint(target, "allowed") })
	for _, account := range [][2]string{
		{target, "other"},
		{target, "default"},
		{"default", "default"},
		{"kube-system", "default"},
		{names.HubNamespace, names.TokenAuthorizer},
		{names.OperatorNamespace, "default"},
	} {
		if err := mint(account[0], account[1]); !apierrors.IsForbidden(err) {
			t.Errorf("minting for %s/%s: %v", account[0], account[1], err)
		}
	}
	for _, a := range beyondTheAuthorizer(target) {
		wantDenied(t, stolen, a)
	}
	// The questions are asked right: what the authorizer needs is allowed.
	for _, needed := range []access{
		{verb: "list", group: v1alpha1.GroupVersion().Group, resource: "tokenexchangepolicies"},
		{verb: "patch", group: v1alpha1.GroupVersion().Group, resource: "tokenexchangepolicies", subresource: "status", namespace: cluster},
		{verb: "list", group: names.GroupCluster, resource: "managedclusters"},
		{verb: "create", resource: "serviceaccounts", subresource: "token", namespace: target, name: "allowed"},
	} {
		wantAllowed(t, stolen, needed)
	}

	t.Log("By deed: no Secret, no rule, and no cluster is read or changed.")
	dry := client.NewDryRunClient(stolen)
	own := &v1alpha1.TokenExchangePolicy{}
	if err := stolen.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: v1alpha1.Name}, own); err != nil {
		t.Fatal(err)
	}
	own.Spec.Allow = append(own.Spec.Allow, v1alpha1.Rule{Namespaces: []v1alpha1.Pattern{"evil"}, MapTo: v1alpha1.Mapping{Namespace: target, Name: "other"}})
	fresh := &v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: v1alpha1.Name}}
	for what, err := range map[string]error{
		"reading Secrets of the hub":  stolen.List(t.Context(), &corev1.SecretList{}, client.InNamespace(names.HubNamespace)),
		"reading Secrets of a target": stolen.List(t.Context(), &corev1.SecretList{}, client.InNamespace(target)),
		"changing a policy":           dry.Update(t.Context(), own),
		"creating a policy":           dry.Create(t.Context(), fresh),
		"deleting a policy":           dry.Delete(t.Context(), own),
		"creating defaults":           dry.Create(t.Context(), &v1alpha1.TokenExchangeDefaults{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.Name}}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// stolenClient is a client with a credential of the token authorizers, as the
// Deployment that runs names it.
func stolenClient(t *testing.T, hub client.Client) client.Client {
	t.Helper()
	var pods corev1.PodList
	eventually(t, "a running token authorizer", func(ctx context.Context) error {
		if err := hub.List(ctx, &pods, client.InNamespace(names.HubNamespace), client.MatchingLabels{"app": names.TokenAuthorizer}); err != nil {
			return err
		}
		if len(pods.Items) == 0 || !ready(&pods.Items[0]) {
			return fmt.Errorf("%d Pods", len(pods.Items))
		}
		return nil
	})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: names.HubNamespace, Name: pods.Items[0].Spec.ServiceAccountName}}
	request := &authenticationv1.TokenRequest{}
	if err := hub.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(fleet.config(t, "hub"))
	config.BearerToken = request.Status.Token
	return newClient(t, config)
}

// beyondTheAuthorizer is what the token authorizer has no business with.
func beyondTheAuthorizer(target string) []access {
	var all []access
	add := func(a access, verbs ...string) {
		for _, verb := range verbs {
			a.verb = verb
			all = append(all, a)
		}
	}
	writes := verbs()[3:]
	exchange := v1alpha1.GroupVersion().Group
	for _, namespace := range []string{"cluster1", "cluster2", target, names.HubNamespace, names.OperatorNamespace, "kube-system", "default", ""} {
		add(access{resource: "secrets", namespace: namespace}, verbs()...)
		add(access{resource: "pods", subresource: "exec", namespace: namespace}, verbs()...)
		add(access{resource: "serviceaccounts", namespace: namespace}, writes...)
		add(access{resource: "serviceaccounts", subresource: "token", namespace: namespace}, verbs()...)
		add(access{resource: "configmaps", namespace: namespace}, writes...)
		add(access{group: exchange, resource: "tokenexchangepolicies", namespace: namespace}, writes...)
		for _, resource := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
			add(access{group: rbacv1.GroupName, resource: resource, namespace: namespace}, writes...)
		}
	}
	add(access{group: exchange, resource: "tokenexchangedefaults"}, writes...)
	add(access{group: names.GroupCluster, resource: "managedclusters"}, writes...)
	add(access{group: names.GroupCluster, resource: "managedclusters", subresource: "status"}, writes...)
	add(access{group: names.RegisterGroup, resource: "managedclusters", subresource: "accept"}, writes...)
	add(access{group: "*", resource: "*"}, "impersonate", "escalate", "bind", "approve", "sign")
	return all
}
