package tokenauthorizer_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	testissuer "github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// TestFromHub: the keys that a cluster publishes count while it is accepted, the
// rules are in objects, and without a rule nothing is allowed.
func TestFromHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := hub.Client(t)
	installation.Hub(t, admin, manifests.Hub{TokenAuthorizer: &manifests.TokenAuthorizer{}})
	w.start(t, tokenauthorizer.Source{FromHub: true, Options: config.Options{Self: policy.Account{Namespace: names.HubNamespace, Name: names.TokenAuthorizer}}},
		manager.Options{Cache: tokenauthorizer.CacheOptions()})
	await.Condition(t, patience, "the role serves", func(ctx context.Context) (bool, error) { return w.serving(ctx), nil })
	token := w.token(t, audience)
	cluster := "of-" + w.namespace // The hub is shared with another turn of this test.
	t.Cleanup(func() { forget(t, admin, cluster) })

	w.turns(t, token, http.StatusUnauthorized) // Nobody knows its issuer.
	join(t, admin, cluster)
	publish(t, admin, cluster)
	w.turns(t, token, http.StatusForbidden) // Known, and allowed nothing.
	if got := w.status(t); !slices.ContainsFunc(got.Clusters, func(c tokenauthorizer.ClusterStatus) bool { return c.Name == cluster && c.Rules == 0 }) {
		t.Errorf("/clusters tells %+v", got.Clusters)
	}

	rules := v1alpha1.TokenExchangePolicySpec{
		TokenRules: v1alpha1.TokenRules{Audiences: []string{audience}},
		Allow:      []v1alpha1.Rule{{Namespaces: []string{"app-*"}, MapTo: v1alpha1.Mapping{Namespace: "{namespace}", Name: "{name}"}}},
	}
	allow(t, admin, cluster, rules)
	w.turns(t, token, http.StatusOK)
	w.becomes(t, token, w.user())

	t.Log("One object that cannot be used stops its own cluster and no other.")
	installation.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "broken-" + cluster}})
	allow(t, admin, "broken-"+cluster, v1alpha1.TokenExchangePolicySpec{Allow: rules.Allow})
	says(t, "broken-"+cluster, metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalid, Message: "no audience is named"})
	w.becomes(t, token, w.user())
	allow(t, admin, cluster, v1alpha1.TokenExchangePolicySpec{Allow: rules.Allow})
	w.turns(t, token, http.StatusUnauthorized)
	says(t, cluster, metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalid, Message: "no audience is named"})
	allow(t, admin, cluster, rules)
	w.turns(t, token, http.StatusOK)
	says(t, cluster, metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted, Message: "1 rule"})
	says(t, cluster, metav1.Condition{Type: v1alpha1.ConditionWarnings, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRisky, Message: "the cluster chooses the namespace of the hub"})

	t.Log("The defaults' rules are for clusters without a policy.")
	defaults := &v1alpha1.TokenExchangeDefaults{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.Name}}
	defaults.Spec.Audiences, defaults.Spec.Allow = []string{audience}, rules.Allow
	if err := admin.Create(t.Context(), defaults); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), defaults) })
	allow(t, admin, cluster, v1alpha1.TokenExchangePolicySpec{})
	w.turns(t, token, http.StatusForbidden)
	if err := admin.Delete(t.Context(), exchangePolicy(cluster)); err != nil {
		t.Fatal(err)
	}
	w.turns(t, token, http.StatusOK)

	accept(t, admin, cluster, false)
	w.turns(t, token, http.StatusUnauthorized)
	accept(t, admin, cluster, true)
	w.turns(t, token, http.StatusOK)
	if err := admin.Delete(t.Context(), defaults); err != nil {
		t.Fatal(err)
	}
	w.turns(t, token, http.StatusForbidden)
	if err := w.observed.ready(nil); err != nil {
		t.Errorf("not ready: %v", err)
	}
}

// TestRulesDoNotWaitForConditions: a change of the rules is in force while the hub does
// not take the conditions of those before.
func TestRulesDoNotWaitForConditions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := hub.Client(t)
	installation.Hub(t, admin, manifests.Hub{TokenAuthorizer: &manifests.TokenAuthorizer{}})
	var held heldStatus
	w.wrap = held.wrap
	w.start(t, tokenauthorizer.Source{FromHub: true}, manager.Options{Cache: tokenauthorizer.CacheOptions()})
	await.Condition(t, patience, "the role serves", func(ctx context.Context) (bool, error) { return w.serving(ctx), nil })

	cluster := "slow-" + w.namespace
	installation.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
	// Another replica may write the conditions of some of these first.
	for rules := 1; !held.waiting.Load(); rules = rules%8 + 1 {
		w.decidesBy(t, cluster, rules)
	}
	w.decidesBy(t, cluster, 9)
}

// TestKeysLoaded: the condition of a policy whose keys are fetched says whether the token
// authorizer has them, in every state of the source, and goes with the source.
func TestKeysLoaded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := hub.Client(t)
	installation.Hub(t, admin, manifests.Hub{TokenAuthorizer: &manifests.TokenAuthorizer{}})
	w.start(t, tokenauthorizer.Source{FromHub: true}, manager.Options{Cache: tokenauthorizer.CacheOptions()})
	cluster := "fetched-" + w.namespace
	installation.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})

	provider := testissuer.NewProvider(t, testissuer.NewKey(t, jwk.ES256))
	provider.Answer(http.NotFound)
	spec := v1alpha1.TokenExchangePolicySpec{
		Issuer: "https://issuer.example", Keys: &v1alpha1.Keys{JWKSURI: provider.URL + testissuer.KeysPath, CA: string(provider.CA)},
		TokenRules: v1alpha1.TokenRules{Audiences: []string{audience}},
	}
	allow(t, admin, cluster, spec)
	condition := func(status metav1.ConditionStatus, reason, message string) {
		t.Helper()
		says(t, cluster, metav1.Condition{Type: v1alpha1.ConditionKeysLoaded, Status: status, Reason: reason, Message: message})
	}
	condition(metav1.ConditionFalse, v1alpha1.ReasonKeysUnavailable, "404 Not Found")
	provider.Answer(nil)
	provider.ServeData([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`))
	spec.Keys.JWKSURI += "?again" // Asked at once, and not after a delay.
	allow(t, admin, cluster, spec)
	condition(metav1.ConditionFalse, v1alpha1.ReasonKeysUnavailable, `"OKP" is not supported`)
	provider.Serve(t, testissuer.NewKey(t, jwk.ES256))
	condition(metav1.ConditionTrue, v1alpha1.ReasonKeysLoaded, "1 key")
	allow(t, admin, cluster, v1alpha1.TokenExchangePolicySpec{TokenRules: spec.TokenRules})
	says(t, cluster, metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted})
	await.Condition(t, patience, "the condition goes", func(ctx context.Context) (bool, error) {
		object := exchangePolicy(cluster)
		err := admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		return err == nil && apimeta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionKeysLoaded) == nil, err
	})
}

// heldStatus lets no write of a status through.
type heldStatus struct {
	waiting atomic.Bool
	next    http.RoundTripper
}

func (h *heldStatus) wrap(next http.RoundTripper) http.RoundTripper {
	h.next = next
	return h
}

// RoundTrip implements http.RoundTripper.
func (h *heldStatus) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/status") {
		return h.next.RoundTrip(r)
	}
	h.waiting.Store(true)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// decidesBy gives a cluster that many rules and waits until they are in force.
func (w *world) decidesBy(t *testing.T, cluster string, rules int) {
	t.Helper()
	spec := v1alpha1.TokenExchangePolicySpec{
		TokenRules: v1alpha1.TokenRules{Audiences: []string{audience}},
		Issuer:     "https://" + cluster, Keys: &v1alpha1.Keys{JWKSURI: "https://" + cluster + "/keys"},
	}
	for i := range rules {
		spec.Allow = append(spec.Allow, v1alpha1.Rule{
			Namespaces: []string{fmt.Sprintf("app-%d", i)}, MapTo: v1alpha1.Mapping{Namespace: "apps", Name: "reader"},
		})
	}
	allow(t, hub.Client(t), cluster, spec)
	await.Condition(t, patience, fmt.Sprintf("%d rules are in force", rules), func(context.Context) (bool, error) {
		return slices.ContainsFunc(w.status(t).Clusters, func(c tokenauthorizer.ClusterStatus) bool { return c.Name == cluster && c.Rules == rules }), nil
	})
}

func exchangePolicy(cluster string) *v1alpha1.TokenExchangePolicy {
	return &v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: v1alpha1.Name}}
}

// allow writes the rules of a cluster.
func allow(t *testing.T, admin client.Client, cluster string, spec v1alpha1.TokenExchangePolicySpec) {
	t.Helper()
	object := exchangePolicy(cluster)
	if _, err := ctrl.CreateOrUpdate(t.Context(), admin, object, func() error {
		object.Spec = spec
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// says waits until a condition of a policy is about its current generation; of the
// message want has a part.
func says(t *testing.T, cluster string, want metav1.Condition) {
	t.Helper()
	admin, object := hub.Client(t), exchangePolicy(cluster)
	await.Condition(t, patience, "the condition "+want.Type, func(ctx context.Context) (bool, error) {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		c := apimeta.FindStatusCondition(object.Status.Conditions, want.Type)
		return c != nil && c.ObservedGeneration == object.Generation && c.Status == want.Status && c.Reason == want.Reason &&
			strings.Contains(c.Message, want.Message), nil
	}, func() any { return object.Status })
}

func join(t *testing.T, admin client.Client, name string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.HubAcceptsClient = true
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.LabelClusterName: name}}}
	for _, object := range []client.Object{cluster, namespace} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for _, condition := range []string{clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionJoined} {
		apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Test"})
	}
	if err := admin.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// forget removes a cluster from the hub.
func forget(t *testing.T, admin client.Client, name string) {
	t.Helper()
	gone := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := admin.Delete(context.WithoutCancel(t.Context()), gone); err != nil {
		t.Error(err)
	}
}

func accept(t *testing.T, admin client.Client, name string, accepts bool) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Spec.HubAcceptsClient = accepts
	if err := admin.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// publish writes what the cluster's agent does.
func publish(t *testing.T, admin client.Client, name string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	put(t, admin, name, names.IssuerConfigMap, hub.Published(t, issuer, name, string(cluster.UID)))
}

func put(t *testing.T, admin client.Client, namespace, name string, data map[string]string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if _, err := ctrl.CreateOrUpdate(t.Context(), admin, object, func() error {
		object.Data = data
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
