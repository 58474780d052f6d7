package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// killed runs a hub that is killed after its n-th write about a cluster, and
// returns once it is gone. It reports false if the hub was done before.
func (e *env) killed(t *testing.T, cluster string, n int, done func(context.Context) (bool, error)) bool {
	t.Helper()
	writes := interrupt.After(n, cluster, concerns)
	end := e.run(t, defaults(), writes.Wrap)
	defer func() { _ = end() }() // It may want to try its last event again.
	return writes.AwaitCut(t, patience, done)
}

// TestAcceptanceResumes kills the hub after each of its writes.
func TestAcceptanceResumes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	never := func(context.Context) (bool, error) { return false, nil }
	// Of eight writes: the request that creates the namespace does not name it.
	for n := 1; n <= 7; n++ {
		name := fmt.Sprintf("killed%d", n)
		e.cluster(t, name, acceptedFromTheStart)
		e.killed(t, name, n, never)
		rest := newWrites()
		stop := e.start(t, defaults(), rest.Wrap)
		e.awaitAccepted(t, name)
		stop()
		if diff := cmp.Diff(everything, e.has(t.Context(), t, name)); diff != "" {
			t.Errorf("killed after write %d (-want +got):\n%s", n, diff)
		}
		// The write that nobody saw the answer of may be made again.
		if total := n + len(rest.About(name)); total > 9 {
			t.Errorf("killed after write %d: then %s", n, strings.Join(rest.About(name), "\n"))
		}
	}
	// A hub that starts with everything done writes nothing about it.
	idle := newWrites()
	e.start(t, defaults(), idle.Wrap)
	e.cluster(t, "last", acceptedFromTheStart)
	e.awaitAccepted(t, "last")
	if got := idle.About("killed"); len(got) > 0 {
		t.Errorf("a hub without news wrote:\n%s", strings.Join(got, "\n"))
	}
}

// TestWithdrawalResumes turns clusters down and deletes them, and kills the hub
// after each of its writes.
func TestWithdrawalResumes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	stop := e.start(t, defaults(), nil)
	const most = 12 // More writes than either takes.
	for n := 1; n <= most; n++ {
		for _, kind := range []string{"denied", "gone"} {
			name := fmt.Sprintf("%s%d", kind, n)
			e.cluster(t, name, acceptedFromTheStart)
			e.awaitAccepted(t, name)
		}
	}
	stop()
	for n := 1; n <= most; n++ {
		name := fmt.Sprintf("denied%d", n)
		e.patch(t, name, `{"spec":{"hubAcceptsClient":false}}`)
		if !e.killed(t, name, n, e.isDenied(name)) {
			break
		}
	}
	for n := 1; n <= most; n++ {
		name := fmt.Sprintf("gone%d", n)
		e.delete(t, name)
		if !e.killed(t, name, n, e.isGone(name)) {
			break
		}
	}
	e.start(t, defaults(), nil)
	var clusters clusterv1.ManagedClusterList
	if err := e.admin.List(t.Context(), &clusters); err != nil {
		t.Fatal(err)
	}
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		switch {
		case cluster.DeletionTimestamp != nil:
			e.awaitGone(t, cluster)
			e.awaitPlace(t, cluster.Name, "lease", "namespace")
		case !cluster.Spec.HubAcceptsClient:
			e.awaitCondition(t, cluster.Name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, names.ReasonHubDenied)
			e.awaitPlace(t, cluster.Name, "cluster role", "cluster role binding", "lease", "namespace")
		}
	}
	// Nobody has a role of a cluster that does not exist.
	var bindings rbacv1.ClusterRoleBindingList
	if err := e.admin.List(t.Context(), &bindings, client.HasLabels{names.LabelClusterName}); err != nil {
		t.Fatal(err)
	}
	for i := range bindings.Items {
		if cluster := bindings.Items[i].Labels[names.LabelClusterName]; !e.exists(t, cluster) {
			t.Errorf("the binding of %s is left", cluster)
		}
	}
}

func (e *env) isDenied(name string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		var cluster clusterv1.ManagedCluster
		err := e.admin.Get(ctx, client.ObjectKey{Name: name}, &cluster)
		condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
		return condition != nil && condition.Reason == names.ReasonHubDenied, err
	}
}

func (e *env) isGone(name string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := e.admin.Get(ctx, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
		return err != nil, client.IgnoreNotFound(err)
	}
}

func (e *env) exists(t *testing.T, name string) bool {
	t.Helper()
	gone, err := e.isGone(name)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return !gone
}

// TestServerRestart kills the API server in the middle of accepting clusters.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	own := controlplane.Start(t)
	e := newEnvOn(t, own.ControlPlane)
	e.start(t, defaults(), nil)
	clusters := make([]string, 30)
	for i := range clusters {
		clusters[i] = fmt.Sprintf("c%02d", i)
		e.cluster(t, clusters[i], acceptedFromTheStart)
	}
	own.StopAPIServer(t)
	own.StartAPIServer(t)
	for _, name := range clusters {
		e.awaitAccepted(t, name)
		if diff := cmp.Diff(everything, e.has(t.Context(), t, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNamespaceOnItsWayOut: a cluster whose namespace somebody is deleting is
// accepted when that is over, and says until then what it waits for.
func TestNamespaceOnItsWayOut(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, defaults(), nil)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{names.LabelClusterName: "c1"}}}
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "held", Finalizers: []string{"example.com/held"}}}
	for _, object := range []client.Object{namespace, held} {
		if err := e.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.admin.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	e.cluster(t, "c1", acceptedFromTheStart)
	cluster := e.awaitCondition(t, "c1", clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, names.ReasonHubError)
	if !slices.ContainsFunc(cluster.Status.Conditions, func(c metav1.Condition) bool {
		return strings.Contains(c.Message, "namespace c1 is terminating")
	}) {
		t.Errorf("conditions %+v", cluster.Status.Conditions)
	}
	if err := e.admin.Patch(t.Context(), held, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	e.awaitAccepted(t, "c1")
	if diff := cmp.Diff(everything, e.has(t.Context(), t, "c1")); diff != "" {
		t.Errorf("on the hub (-want +got):\n%s", diff)
	}
}
