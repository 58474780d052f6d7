package tokenauthorizer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	testissuer "github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// fed is a hub and a store that is fed from it with the rights of the token
// authorizer that we install.
type fed struct {
	admin client.Client
	store *jwks.Store
}

// TestPublished follows a cluster's keys through its life on the hub: those of a
// detached cluster count no more at once.
func TestPublished(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	e := &fed{admin: cp.Client(t), store: jwks.New(jwks.Config{Hub: true})}
	installation.Hub(t, e.admin, manifests.Hub{TokenAuthorizer: &manifests.TokenAuthorizer{}})
	if err := e.store.Configure([]jwks.Cluster{{Name: jwks.Everyone, Source: jwks.Source{Hub: true}}}, nil); err != nil {
		t.Fatal(err)
	}
	one, next, two := testissuer.NewKey(t, "RS256"), testissuer.NewKey(t, "ES256"), testissuer.NewKey(t, "ES256")
	e.join(t, "cluster1")
	e.publish(t, "cluster1", names.IssuerConfigMap, one)
	e.publish(t, "default", names.IssuerConfigMap, two)
	e.finds(t, one, "", denial.KeysUnavailable)
	if e.store.Ready() == nil {
		t.Error("the store is ready before the hub was read")
	}

	controllers.Start(t, cp.ConfigForAccount(t, names.HubNamespace, names.TokenAuthorizer),
		manager.Options{Cache: tokenauthorizer.CacheOptions()},
		func(_ context.Context, mgr manager.Manager) error { return tokenauthorizer.Follow(mgr, e.store) })
	await.Success(t, patience, "the hub was read", func(context.Context) error { return e.store.Ready() })
	e.finds(t, one, "cluster1", "")
	e.finds(t, two, "", denial.UnknownKey) // In the namespace of no cluster.

	e.publish(t, "cluster1", "another-name", two)
	e.publish(t, "cluster1", names.IssuerConfigMap, one, next)
	e.finds(t, next, "cluster1", "")
	e.finds(t, two, "", denial.UnknownKey)

	t.Log("What cannot be used is nothing, and a key without a proof does not count.")
	e.put(t, "cluster1", names.IssuerConfigMap, map[string]string{names.IssuerKeyIssuer: issuer, names.IssuerKeyJWKS: "broken"})
	e.finds(t, next, "", denial.UnknownIssuer)
	await.Completion(t, patience, func(context.Context) string {
		if status := e.store.Status(); len(status) != 1 || status[0].Err == nil {
			return fmt.Sprintf("an error in %+v", status)
		}
		return ""
	})
	half := e.data(t, "cluster1", next)
	half[names.IssuerKeyJWKS] = string(testissuer.JWKS(t, one, next))
	e.put(t, "cluster1", names.IssuerConfigMap, half)
	e.finds(t, next, "cluster1", "")
	e.finds(t, one, "", denial.UnknownKey)

	t.Log("The hub denies the cluster and accepts it again.")
	e.accept(t, "cluster1", false)
	e.finds(t, next, "", denial.UnknownIssuer)
	e.accept(t, "cluster1", true)
	e.finds(t, next, "cluster1", "")

	t.Log("A second cluster publishes one of its own and one of the first's, without and with a proof.")
	e.publish(t, "cluster1", names.IssuerConfigMap, one, next)
	e.finds(t, one, "cluster1", "")
	e.join(t, "cluster2")
	copied := e.data(t, "cluster2", two)
	copied[names.IssuerKeyJWKS] = string(testissuer.JWKS(t, two, next))
	e.put(t, "cluster2", names.IssuerConfigMap, copied)
	e.finds(t, two, "cluster2", "")
	e.finds(t, next, "cluster1", "")
	e.publish(t, "cluster2", names.IssuerConfigMap, two, next)
	e.finds(t, next, "", denial.AmbiguousKey)
	e.finds(t, one, "cluster1", "")
	e.finds(t, two, "cluster2", "")
	for _, status := range e.store.Status() {
		if len(status.Shared) != 1 || len(status.KeyIDs) != 1 {
			t.Errorf("cluster %s: %d shared keys and %d others, want one each", status.Cluster, len(status.Shared), len(status.KeyIDs))
		}
	}
	e.publish(t, "cluster2", names.IssuerConfigMap, two)
	e.finds(t, next, "cluster1", "")

	t.Log("One cluster stops to publish, the other leaves, and one of its name comes.")
	if err := e.admin.Delete(t.Context(), configMap("cluster2", names.IssuerConfigMap)); err != nil {
		t.Fatal(err)
	}
	e.finds(t, two, "", denial.UnknownKey)
	generation := e.store.Generation("cluster1")
	if err := e.admin.Delete(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}}); err != nil {
		t.Fatal(err)
	}
	e.finds(t, next, "", denial.UnknownIssuer)
	if e.store.Generation("cluster1") == generation {
		t.Error("a cluster that left leaves the generation")
	}
	e.join(t, "cluster1")
	await.Completion(t, patience, func(context.Context) string {
		if status := e.store.Status(); len(status) != 1 || status[0].Err == nil {
			return fmt.Sprintf("an error in %+v", status)
		}
		return ""
	})
	e.finds(t, next, "", denial.UnknownIssuer) // What its predecessor published proves nothing for it.
}

// join makes a cluster that the hub accepts and that has joined.
func (e *fed) join(t *testing.T, name string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.HubAcceptsClient = true
	installation.Create(t, e.admin, cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{names.LabelClusterName: name},
	}})
	for _, condition := range []string{clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionJoined} {
		apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: "Test",
		})
	}
	if err := e.admin.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

func (e *fed) accept(t *testing.T, name string, accepts bool) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := e.admin.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Spec.HubAcceptsClient = accepts
	if err := e.admin.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// publish has a cluster publish keys that it has proven.
func (e *fed) publish(t *testing.T, namespace, name string, keys ...*testissuer.Key) {
	t.Helper()
	e.put(t, namespace, name, e.data(t, namespace, keys...))
}

// data is what a cluster publishes that has proven its keys.
func (e *fed) data(t *testing.T, name string, keys ...*testissuer.Key) map[string]string {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := client.IgnoreNotFound(e.admin.Get(t.Context(), client.ObjectKey{Name: name}, cluster)); err != nil {
		t.Fatal(err)
	}
	return testissuer.Published(t, issuer, name, string(cluster.UID), keys...)
}

func (e *fed) put(t *testing.T, namespace, name string, data map[string]string) {
	t.Helper()
	object := configMap(namespace, name)
	if _, err := ctrl.CreateOrUpdate(t.Context(), e.admin, object, func() error {
		object.Data = data
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// finds waits until a key names a cluster, or is refused for a reason.
func (e *fed) finds(t *testing.T, key *testissuer.Key, cluster string, reason denial.Reason) {
	t.Helper()
	await.Completion(t, patience, func(ctx context.Context) string {
		keys, err := e.store.Lookup(ctx, issuer, key.ID)
		got := denial.Reason("")
		if denied, ok := errors.AsType[*denial.Error](err); ok {
			got = denied.Reason
		}
		if got != reason || (err == nil && (len(keys) != 1 || keys[0].Cluster != cluster)) {
			return fmt.Sprintf("key %s of %q or refused with %q: %+v, %v", key.ID, cluster, reason, keys, err)
		}
		return ""
	})
}
