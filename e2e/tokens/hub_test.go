package tokens_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestFromHub has an authorizer that takes keys and rules from the hub, as the
// operator runs it. The clusters' agents are played here; that they publish is
// in the other suite.
func TestFromHub(t *testing.T) {
	t.Parallel()
	w := &hubWorld{admin: hub.Client(t), c1: newCluster(t), c2: newCluster(t)}
	target(t, "from-hub-1", "reader")
	target(t, "from-hub-2", "reader")
	w.a = newAuthorizer(t, "--from-hub").ready(t)
	w.f = newFront(t, []*authorizer{w.a}, nil)
	w.t1, w.t2 = w.c1.mint(t, "app", "web", audience), w.c2.mint(t, "app", "web", audience)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"without anything every request is refused", w.nothing},
		{"two clusters with one and the same issuer are two", w.twoClusters},
		{"a cluster that is not joined is not believed", w.notJoined},
		{"a rule that goes ends with the next request", w.policyChange},
		{"a cluster that is denied ends with the next request", w.denied},
		{"a cluster that copies another's keys harms nobody", w.copied},
		{"a key that two clusters have proven is refused for both", w.shared},
		{"a cluster that is gone is unknown", w.gone},
	} {
		if !t.Run(step.name, step.run) {
			t.FailNow() // Later steps build on this one.
		}
	}
}

type hubWorld struct {
	admin  client.Client
	c1, c2 *cluster
	a      *authorizer
	f      *front
	t1, t2 string
}

func (w *hubWorld) nothing(t *testing.T) {
	w.f.refused(t, w.t1, http.StatusUnauthorized, "unknown_issuer")
}

func (w *hubWorld) twoClusters(t *testing.T) {
	w.join(t, "from-hub-a")
	w.join(t, "from-hub-b")
	w.publish(t, "from-hub-a", w.c1)
	w.publish(t, "from-hub-b", w.c2)
	w.f.ends(t, w.t1, http.StatusForbidden) // Known, and not allowed anything.
	w.policy(t, "from-hub-a", "from-hub-b")
	w.f.becomes(t, w.t1, serviceAccount("from-hub-1", "reader"))
	w.f.becomes(t, w.t2, serviceAccount("from-hub-2", "reader"))
}

func (w *hubWorld) notJoined(t *testing.T) {
	w.condition(t, "from-hub-b", clusterv1.ManagedClusterConditionJoined, metav1.ConditionFalse)
	w.f.ends(t, w.t2, http.StatusUnauthorized)
	w.condition(t, "from-hub-b", clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue)
	w.f.becomes(t, w.t2, serviceAccount("from-hub-2", "reader"))
}

func (w *hubWorld) policyChange(t *testing.T) {
	w.policy(t, "from-hub-a")
	w.f.ends(t, w.t2, http.StatusForbidden)
	w.f.expect(t, w.t1, serviceAccount("from-hub-1", "reader"))
	w.policy(t, "from-hub-a", "from-hub-b")
	w.f.becomes(t, w.t2, serviceAccount("from-hub-2", "reader"))
}

func (w *hubWorld) denied(t *testing.T) {
	w.accept(t, "from-hub-b", metav1.ConditionFalse)
	w.f.ends(t, w.t2, http.StatusUnauthorized)
	w.f.expect(t, w.t1, serviceAccount("from-hub-1", "reader"))
	w.accept(t, "from-hub-b", metav1.ConditionTrue)
	w.f.becomes(t, w.t2, serviceAccount("from-hub-2", "reader"))
}

// copied has a cluster publish all that another one publishes, and that one's
// keys under a proof that a tenant of it made for the thief.
func (w *hubWorld) copied(t *testing.T) {
	w.join(t, "from-hub-thief")
	stolen := w.c1.Published(t, sharedIssuer, "from-hub-a", w.uid(t, "from-hub-a"))
	own := names.IssuerProofAudience("from-hub-thief", w.uid(t, "from-hub-thief"))
	stolen[names.IssuerKeyProofs] += "\n" + w.c1.mint(t, "app", "web", own)
	w.put(t, "from-hub-thief", stolen)
	// The hub's answer about this cluster, which comes later, shows that it was seen.
	w.join(t, "from-hub-marker")
	w.put(t, "from-hub-marker", w.c2.Published(t, sharedIssuer, "from-hub-marker", w.uid(t, "from-hub-marker")))
	w.f.ends(t, w.t2, http.StatusUnauthorized)
	w.withdraw(t, "from-hub-marker")
	w.f.becomes(t, w.t2, serviceAccount("from-hub-2", "reader"))
	w.f.expect(t, w.t1, serviceAccount("from-hub-1", "reader"))
	w.withdraw(t, "from-hub-thief")
}

func (w *hubWorld) shared(t *testing.T) {
	w.join(t, "from-hub-copy")
	w.publish(t, "from-hub-copy", w.c1)
	w.f.ends(t, w.t1, http.StatusUnauthorized)
	w.f.refused(t, w.t1, http.StatusUnauthorized, "ambiguous_key")
	w.f.expect(t, w.t2, serviceAccount("from-hub-2", "reader"))
	w.withdraw(t, "from-hub-copy")
	w.f.becomes(t, w.t1, serviceAccount("from-hub-1", "reader"))
}

func (w *hubWorld) gone(t *testing.T) {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "from-hub-b"}}
	if err := w.admin.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	w.f.ends(t, w.t2, http.StatusUnauthorized)
}

// join makes a ManagedCluster that is accepted and has joined.
func (w *hubWorld) join(t *testing.T, name string) {
	t.Helper()
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.LabelClusterName: name}}},
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}},
	} {
		if err := w.admin.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	w.condition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue)
	w.condition(t, name, clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue)
}

func (w *hubWorld) condition(t *testing.T, name, kind string, status metav1.ConditionStatus) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := w.admin.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Test", Message: "By the test."})
	if err := w.admin.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// accept accepts or denies a cluster, and does what the hub's controller does.
func (w *hubWorld) accept(t *testing.T, name string, accepted metav1.ConditionStatus) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"hubAcceptsClient":%t}}`, accepted == metav1.ConditionTrue))
	if err := w.admin.Patch(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch); err != nil {
		t.Fatal(err)
	}
	w.condition(t, name, clusterv1.ManagedClusterConditionHubAccepted, accepted)
}

// publish writes what a cluster's agent would.
func (w *hubWorld) publish(t *testing.T, name string, c *cluster) {
	t.Helper()
	w.put(t, name, c.Published(t, sharedIssuer, name, w.uid(t, name)))
}

func (w *hubWorld) uid(t *testing.T, name string) string {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := w.admin.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	return string(cluster.UID)
}

func (w *hubWorld) put(t *testing.T, name string, data map[string]string) {
	t.Helper()
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: names.IssuerConfigMap}, Data: data}
	if err := w.admin.Create(t.Context(), published); err != nil {
		t.Fatal(err)
	}
}

func (w *hubWorld) withdraw(t *testing.T, name string) {
	t.Helper()
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: names.IssuerConfigMap}}
	if err := w.admin.Delete(t.Context(), published); err != nil {
		t.Fatal(err)
	}
}

// policy has rules for clusters: the n-th becomes from-hub-n/reader. Others of the
// test's have none.
func (w *hubWorld) policy(t *testing.T, clusters ...string) {
	t.Helper()
	for i, name := range []string{"from-hub-a", "from-hub-b"} {
		policy := &v1alpha1.TokenExchangePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: v1alpha1.Name}}
		if _, err := ctrl.CreateOrUpdate(t.Context(), w.admin, policy, func() error {
			policy.Spec.Audiences, policy.Spec.Allow = []string{audience}, nil
			if slices.Contains(clusters, name) {
				policy.Spec.Allow = []v1alpha1.Rule{{
					Namespaces: []string{"app"}, MapTo: v1alpha1.Mapping{Namespace: fmt.Sprintf("from-hub-%d", i+1), Name: "reader"},
				}}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
