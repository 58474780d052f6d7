package extauthz_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// policyName is the ConfigMap with the configuration.
var policyName = types.NamespacedName{Namespace: names.HubNamespace, Name: names.TokenAuthorizer}

// TestFromHub: the keys that a cluster publishes count while it is accepted, the
// rules are in a ConfigMap, and without a rule nothing is allowed.
func TestFromHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := hub.Client(t)
	installation.Hub(t, admin, manifests.Hub{TokenAuthorizer: &manifests.TokenAuthorizer{}})
	w.start(t, extauthz.Source{ConfigMap: policyName}, manager.Options{Cache: extauthz.CacheOptions()})
	await.Condition(t, patience, "the role serves", func(ctx context.Context) (bool, error) { return w.serving(ctx), nil })
	token := w.token(t, audience)
	cluster := "of-" + w.namespace // The hub is shared with another turn of this test.
	t.Cleanup(func() { forget(t, admin, cluster) })

	w.turns(t, token, http.StatusUnauthorized) // Nobody knows its issuer.
	join(t, admin, cluster)
	publish(t, admin, cluster, string(hub.KeySet(t)))
	w.turns(t, token, http.StatusForbidden) // Known, and allowed nothing.
	if got := w.status(t); len(got.Clusters) != 1 || got.Clusters[0].Name != cluster || got.Clusters[0].Rules != 0 {
		t.Errorf("/clusters tells %+v", got.Clusters)
	}

	rules := "defaults: {audiences: [" + audience + "]}\nclusters:\n- name: NAME\n  allow:\n  - {namespaces: [app-*], mapTo: {namespace: \"{namespace}\", name: \"{name}\"}}\n"
	configure(t, admin, strings.Replace(rules, "NAME", cluster, 1))
	w.turns(t, token, http.StatusOK)
	w.becomes(t, token, w.user())
	configure(t, admin, "clusters: [{")
	await.Condition(t, patience, "the broken one is told", func(context.Context) (bool, error) {
		return w.status(t).Configuration.Error != "", nil
	})
	w.becomes(t, token, w.user())
	configure(t, admin, strings.Replace(rules, "NAME", "other", 1))
	w.turns(t, token, http.StatusForbidden)
	configure(t, admin, strings.Replace(rules, "NAME", `"*"`, 1))
	w.turns(t, token, http.StatusOK)

	accept(t, admin, cluster, false)
	w.turns(t, token, http.StatusUnauthorized)
	accept(t, admin, cluster, true)
	w.turns(t, token, http.StatusOK)
	if err := admin.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: policyName.Namespace, Name: policyName.Name}}); err != nil {
		t.Fatal(err)
	}
	w.turns(t, token, http.StatusForbidden)
	if err := w.observed.ready(nil); err != nil {
		t.Errorf("not ready: %v", err)
	}
}

func join(t *testing.T, admin client.Client, name string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.HubAcceptsClient = true
	for _, object := range []client.Object{cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}} {
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
func publish(t *testing.T, admin client.Client, namespace, keys string) {
	t.Helper()
	put(t, admin, namespace, names.IssuerConfigMap, map[string]string{names.IssuerKeyIssuer: issuer, names.IssuerKeyJWKS: keys})
}

// configure writes the configuration on the hub.
func configure(t *testing.T, admin client.Client, text string) {
	t.Helper()
	put(t, admin, policyName.Namespace, policyName.Name, map[string]string{names.TokenAuthorizerConfigKey: text})
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
