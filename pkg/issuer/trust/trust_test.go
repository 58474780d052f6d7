package trust_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

const patience = await.Patience

// plane is the hub of every test, with what init installs.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) { controlplane.Main(m, &plane) }

// env is a hub whose registration controllers and trust run as they do in one
// process, with the ServiceAccount of the manifests.
type env struct {
	plane    *controlplane.ControlPlane
	admin    client.Client
	registry *prometheus.Registry
	writes   *interrupt.Writes
	stop     func() error
}

func (e *env) start(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) {
	t.Helper()
	e.registry = prometheus.NewRegistry()
	objects, err := hub.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(objects.ByObject, trust.CacheObjects())
	connection := e.plane.ConfigForAccount(t, names.HubNamespace, names.HubRegistrationServiceAccount)
	if wrap != nil {
		connection.Wrap(wrap)
	}
	e.stop = controllers.Run(t, connection, manager.Options{Cache: objects}, time.Second, func(ctx context.Context, mgr manager.Manager) error {
		if err := hub.Setup(ctx, mgr, hub.Config{
			IdentityAnnotations: drivers.All().Annotations(),
			Drivers:             []hub.Driver{{Hub: csr.Hub{}}}, Namespace: names.HubNamespace,
			ResourceCleanup: true, CleanupResources: hub.DefaultCleanupResources(), Clock: clock.RealClock{},
		}); err != nil {
			return err
		}
		return trust.Setup(ctx, mgr, trust.Config{Clock: clock.RealClock{}, Metrics: e.registry})
	})
}

func newEnv(t *testing.T, plane *controlplane.ControlPlane) *env {
	t.Helper()
	e := &env{plane: plane, admin: plane.Client(t)}
	installation.Hub(t, e.admin, manifests.Hub{})
	return e
}

// join makes a cluster that is accepted and has joined.
func (e *env) join(t *testing.T, name string) {
	t.Helper()
	installation.Agent(t, e.admin, name, "a1")
	installation.Create(t, e.admin, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	})
	eventually(t, name+" to be accepted", func(ctx context.Context) error {
		mc := e.cluster(ctx, t, name)
		if !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
			return errors.New("not yet")
		}
		apimeta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue, Reason: names.ReasonJoined})
		return e.admin.Status().Update(ctx, mc)
	})
}

func (e *env) cluster(ctx context.Context, t *testing.T, name string) *clusterv1.ManagedCluster {
	t.Helper()
	mc := &clusterv1.ManagedCluster{}
	if err := e.admin.Get(ctx, client.ObjectKey{Name: name}, mc); err != nil {
		t.Fatal(err)
	}
	return mc
}

func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	await.Success(t, patience, what, try)
}

// publish writes as the agent of a cluster does, with its rights, keys that the
// cluster has proven.
func (e *env) publish(t *testing.T, cluster, name string, keys ...*issuer.Key) {
	t.Helper()
	e.apply(t, cluster, e.data(t, cluster, name, keys...))
}

func (e *env) apply(t *testing.T, cluster string, data map[string]string) {
	t.Helper()
	agent := e.plane.ClientFor(t, e.plane.ConfigFor(t, names.AgentUser(cluster, "a1"), names.ClusterGroup(cluster), names.GroupManagedClusters, "system:authenticated"))
	config := corev1ac.ConfigMap(names.IssuerConfigMap, cluster).WithData(data)
	eventually(t, cluster+" to publish", func(ctx context.Context) error {
		return agent.Apply(ctx, config, client.ForceOwnership, client.FieldOwner("agent"))
	})
}

// data is what a cluster publishes that has proven keys.
func (e *env) data(t *testing.T, cluster, name string, keys ...*issuer.Key) map[string]string {
	t.Helper()
	return issuer.Published(t, name, cluster, string(e.cluster(t.Context(), t, cluster).UID), keys...)
}

func published(namespace string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.IssuerConfigMap}, Data: data}
}

// says waits until a cluster's condition has a reason and words; an empty reason
// is no condition.
func (e *env) says(t *testing.T, cluster, reason string, words ...string) {
	t.Helper()
	eventually(t, cluster+" to say "+reason, func(ctx context.Context) error {
		c := apimeta.FindStatusCondition(e.cluster(ctx, t, cluster).Status.Conditions, names.ConditionIssuerTrusted)
		if c == nil && reason == "" {
			return nil
		}
		if c == nil || c.Reason != reason || (c.Status == metav1.ConditionTrue) != (reason == names.ReasonKeysTrusted) {
			return fmt.Errorf("it says %+v", c)
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return fmt.Errorf("it says %q", c.Message)
			}
		}
		return nil
	})
}

func (e *env) publishes(ctx context.Context, t *testing.T, cluster string) bool {
	t.Helper()
	err := e.admin.Get(ctx, client.ObjectKey{Namespace: cluster, Name: names.IssuerConfigMap}, &corev1.ConfigMap{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

func (e *env) gone(t *testing.T, cluster string) {
	t.Helper()
	eventually(t, "what "+cluster+" published to be deleted", func(ctx context.Context) error {
		if e.publishes(ctx, t, cluster) {
			return errors.New("not yet")
		}
		return nil
	})
}

func (e *env) accept(t *testing.T, cluster string, accepted bool) {
	t.Helper()
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	body := fmt.Sprintf(`{"spec":{"hubAcceptsClient":%v}}`, accepted)
	if err := e.admin.Patch(t.Context(), mc, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		t.Fatal(err)
	}
}

const kubernetes = "https://kubernetes.default.svc.cluster.local"

// TestTrust is one hub's story: each part begins where the last one ended, with
// clusters of its own.
func TestTrust(t *testing.T) {
	t.Parallel()
	e := newEnv(t, plane)
	e.writes = interrupt.Count(concerns)
	e.start(t, e.writes.Wrap)
	t.Cleanup(func() {
		if err := e.stop(); err != nil {
			t.Errorf("the hub: %v", err)
		}
	})
	for name, test := range map[string]func(*testing.T){
		"trusted, and quiet afterwards": e.testTrusted,
		"invalid":                       e.testInvalid,
		"shared":                        e.testShared,
		"copied":                        e.testCopied,
		"a name is used again":          e.testReused,
		"denied and accepted again":     e.testDenied,
		"leaves":                        e.testLeaves,
		"lost its finalizers":           e.testLost,
		"before it joined":              e.testNotJoined,
		"namespaces of no cluster":      e.testStrangers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// TestInterrupted kills the hub after each of its writes about the keys of a
// cluster that is denied. The next one finishes.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	e := newEnv(t, controlplane.Lease(t))
	const most = 2 // The deletion and the condition.
	for n := 1; n <= most; n++ {
		name := fmt.Sprint("interrupted", n)
		e.start(t, nil)
		e.join(t, name)
		e.publish(t, name, kubernetes, issuer.NewKey(t, "ES256"))
		e.says(t, name, names.ReasonKeysTrusted)
		if err := e.stop(); err != nil {
			t.Fatal(err)
		}
		e.accept(t, name, false)
		writes := interrupt.After(n, name, func(write, cluster string) bool {
			return strings.HasPrefix(write, "DELETE ") && concerns(write, cluster) || strings.HasSuffix(write, "/"+cluster+"/status")
		})
		e.start(t, writes.Wrap)
		writes.AwaitCut(t, patience, func(context.Context) (bool, error) { return false, nil })
		_ = e.stop() // It may not be able to say goodbye.
		e.start(t, nil)
		e.gone(t, name)
		e.says(t, name, names.ReasonClusterNotAccepted)
		if err := e.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func concerns(write, cluster string) bool {
	return strings.Contains(write, "/"+cluster+"/status") || strings.Contains(write, "/namespaces/"+cluster+"/configmaps")
}

func (e *env) testTrusted(t *testing.T) {
	t.Helper()
	key := issuer.NewKey(t, "ES256")
	e.join(t, "trusted")
	e.publish(t, "trusted", kubernetes, key)
	e.says(t, "trusted", names.ReasonKeysTrusted, kubernetes, key.ID)
	before := len(e.writes.About("trusted"))
	// Annotations make it look without changing what it wants.
	for n := range 3 {
		m := published("trusted", e.data(t, "trusted", kubernetes, key))
		m.Annotations = map[string]string{"touched": strconv.Itoa(n)}
		if err := e.admin.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	// Somebody else's condition is repaired, which shows that it has looked.
	mc := e.cluster(t.Context(), t, "trusted")
	apimeta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: names.ConditionIssuerTrusted, Status: metav1.ConditionFalse, Reason: "Mine"})
	if err := e.admin.Status().Update(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	e.says(t, "trusted", names.ReasonKeysTrusted)
	if after := e.writes.About("trusted"); len(after) != before+1 {
		t.Errorf("wrote %v", after[before:])
	}
	// Two clusters may have one issuer, as kubeadm's have, with keys of their own.
	e.join(t, "namesake")
	e.publish(t, "namesake", kubernetes, issuer.NewKey(t, "RS256"))
	e.says(t, "namesake", names.ReasonKeysTrusted)
	e.says(t, "trusted", names.ReasonKeysTrusted)
	if err := e.admin.Delete(t.Context(), published("namesake", nil)); err != nil {
		t.Fatal(err)
	}
	e.says(t, "namesake", "")
}

func (e *env) testInvalid(t *testing.T) {
	t.Helper()
	e.join(t, "invalid")
	secret := issuer.NewKey(t, "ES256").JWK(t)
	secret["d"] = "AAAA"
	for name, tc := range map[string]struct {
		issuer string
		set    string
		words  string
	}{
		"no issuer":     {"", string(issuer.JWKS(t, issuer.NewKey(t, "ES256"))), "issuer is missing"},
		"a line more":   {"https://a\nb", string(issuer.JWKS(t, issuer.NewKey(t, "ES256"))), "characters"},
		"a long issuer": {"https://" + strings.Repeat("a", 3000), string(issuer.JWKS(t, issuer.NewKey(t, "ES256"))), "longer"},
		"no set":        {kubernetes, "", "Web Key Set"},
		"no keys":       {kubernetes, `{"keys":[]}`, "no usable key"},
		"a secret":      {kubernetes, string(issuer.Set(t, secret)), "secret"},
	} {
		e.apply(t, "invalid", map[string]string{names.IssuerKeyIssuer: tc.issuer, names.IssuerKeyJWKS: tc.set})
		e.says(t, "invalid", names.ReasonKeysInvalid, tc.words)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	e.publish(t, "invalid", kubernetes, issuer.NewKey(t, "ES512"))
	e.says(t, "invalid", names.ReasonKeysTrusted)
}

func (e *env) testShared(t *testing.T) {
	t.Helper()
	key, own := issuer.NewKey(t, "ES384"), issuer.NewKey(t, "ES384")
	e.join(t, "shares-a")
	e.join(t, "shares-b")
	e.publish(t, "shares-a", kubernetes, own, key)
	e.says(t, "shares-a", names.ReasonKeysTrusted)
	renamed := *key // The same key under another id is the same key.
	renamed.ID = "another"
	e.publish(t, "shares-b", "https://other", &renamed)
	e.says(t, "shares-b", names.ReasonKeysShared, "shares-a", "another")
	e.says(t, "shares-a", names.ReasonKeysShared, "shares-b", key.ID)
	if got := e.metric(t, names.ReasonKeysShared); got != 2 {
		t.Errorf("%v clusters share keys", got)
	}
	e.publish(t, "shares-b", "https://other", issuer.NewKey(t, "ES256"))
	e.says(t, "shares-a", names.ReasonKeysTrusted)
	e.says(t, "shares-b", names.ReasonKeysTrusted)
	// One that is denied claims nothing any more.
	e.publish(t, "shares-b", "https://other", &renamed)
	e.says(t, "shares-a", names.ReasonKeysShared)
	e.accept(t, "shares-b", false)
	e.says(t, "shares-a", names.ReasonKeysTrusted)
	e.says(t, "shares-b", names.ReasonClusterNotAccepted)
}

// testCopied: a cluster that publishes another's keys, with all that the other
// one published, harms nobody and is told what is missing.
func (e *env) testCopied(t *testing.T) {
	t.Helper()
	key, own := issuer.NewKey(t, "RS256"), issuer.NewKey(t, "ES256")
	e.join(t, "copied")
	e.join(t, "copies")
	e.publish(t, "copied", kubernetes, key)
	e.says(t, "copied", names.ReasonKeysTrusted)
	e.apply(t, "copies", e.data(t, "copied", kubernetes, key))
	e.says(t, "copies", names.ReasonKeysUnproven, key.ID)
	both := e.data(t, "copies", kubernetes, own)
	both[names.IssuerKeyJWKS] = string(issuer.JWKS(t, key, own))
	e.apply(t, "copies", both)
	e.says(t, "copies", names.ReasonKeysTrusted, own.ID, key.ID+" does not count")
	e.says(t, "copied", names.ReasonKeysTrusted)
}

// testReused: a cluster of a name that was used before proves its keys itself.
func (e *env) testReused(t *testing.T) {
	t.Helper()
	key := issuer.NewKey(t, "ES256")
	e.join(t, "reused")
	before := e.data(t, "reused", kubernetes, key)
	e.apply(t, "reused", before)
	e.says(t, "reused", names.ReasonKeysTrusted)
	mc := e.cluster(t.Context(), t, "reused")
	if err := e.admin.Delete(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cluster to go", func(ctx context.Context) error {
		if err := e.admin.Get(ctx, client.ObjectKeyFromObject(mc), mc); !apierrors.IsNotFound(err) {
			return errors.New("not yet")
		}
		return nil
	})
	e.join(t, "reused")
	e.apply(t, "reused", before)
	e.says(t, "reused", names.ReasonKeysUnproven)
	e.publish(t, "reused", kubernetes, key)
	e.says(t, "reused", names.ReasonKeysTrusted)
}

func (e *env) metric(t *testing.T, reason string) float64 {
	t.Helper()
	families, err := e.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "ocm_issuer_clusters" && m.GetLabel()[0].GetValue() == reason {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric for %s", reason)
	return 0
}

func (e *env) testDenied(t *testing.T) {
	t.Helper()
	key := issuer.NewKey(t, "ES256")
	e.join(t, "denied")
	e.publish(t, "denied", kubernetes, key)
	e.says(t, "denied", names.ReasonKeysTrusted)
	e.accept(t, "denied", false)
	e.gone(t, "denied")
	e.says(t, "denied", names.ReasonClusterNotAccepted)
	// What an administrator puts there is not believed either.
	if err := e.admin.Create(t.Context(), published("denied", e.data(t, "denied", kubernetes, key))); err != nil {
		t.Fatal(err)
	}
	e.gone(t, "denied")
	e.accept(t, "denied", true)
	e.says(t, "denied", "")
	e.publish(t, "denied", kubernetes, key)
	e.says(t, "denied", names.ReasonKeysTrusted)
}

func (e *env) testLeaves(t *testing.T) {
	t.Helper()
	e.join(t, "leaves")
	e.publish(t, "leaves", kubernetes, issuer.NewKey(t, "ES256"))
	e.says(t, "leaves", names.ReasonKeysTrusted)
	mc := e.cluster(t.Context(), t, "leaves")
	if err := e.admin.Delete(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	e.gone(t, "leaves")
	eventually(t, "the cluster to go", func(ctx context.Context) error {
		if err := e.admin.Get(ctx, client.ObjectKeyFromObject(mc), mc); !apierrors.IsNotFound(err) {
			return errors.New("not yet")
		}
		return nil
	})
}

// testLost: somebody takes the finalizers away, so that nobody saw the cluster go.
func (e *env) testLost(t *testing.T) {
	t.Helper()
	e.join(t, "lost")
	e.publish(t, "lost", kubernetes, issuer.NewKey(t, "ES256"))
	e.says(t, "lost", names.ReasonKeysTrusted)
	eventually(t, "the cluster to go", func(ctx context.Context) error {
		mc := &clusterv1.ManagedCluster{}
		err := e.admin.Get(ctx, client.ObjectKey{Name: "lost"}, mc)
		if apierrors.IsNotFound(err) {
			return nil
		}
		mc.Finalizers = nil
		return errors.Join(errors.New("not yet"), err, e.admin.Update(ctx, mc), e.admin.Delete(ctx, mc))
	})
	e.gone(t, "lost")
}

// testNotJoined: what an accepted cluster publishes before it joined counts
// neither for it nor against others, and nothing is said about it.
func (e *env) testNotJoined(t *testing.T) {
	t.Helper()
	key := issuer.NewKey(t, "ES256")
	installation.Agent(t, e.admin, "early", "a1")
	installation.Create(t, e.admin, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "early"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	})
	e.publish(t, "early", kubernetes, key)
	// The hub looks at one cluster after the other: what it says about the second
	// shows that it has looked at the first.
	e.join(t, "intime")
	e.publish(t, "intime", kubernetes, key)
	e.says(t, "intime", names.ReasonKeysTrusted)
	if c := apimeta.FindStatusCondition(e.cluster(t.Context(), t, "early").Status.Conditions, names.ConditionIssuerTrusted); c != nil {
		t.Errorf("before it joined it says %+v", c)
	}
	if !e.publishes(t.Context(), t, "early") {
		t.Error("what it published is gone")
	}
	e.join(t, "early")
	e.says(t, "early", names.ReasonKeysShared)
	e.says(t, "intime", names.ReasonKeysShared)
	e.publish(t, "early", kubernetes, issuer.NewKey(t, "ES256"))
	e.says(t, "early", names.ReasonKeysTrusted)
}

// testStrangers: an object of that name where no cluster is claims nothing and
// is nobody's business.
func (e *env) testStrangers(t *testing.T) {
	t.Helper()
	key := issuer.NewKey(t, "ES256")
	if err := e.admin.Create(t.Context(), published("default", issuer.Published(t, kubernetes, "default", "", key))); err != nil {
		t.Fatal(err)
	}
	e.join(t, "robbed")
	e.publish(t, "robbed", kubernetes, key)
	e.says(t, "robbed", names.ReasonKeysTrusted)
	if !e.publishes(t.Context(), t, "default") {
		t.Error("somebody's ConfigMap was deleted")
	}
}
