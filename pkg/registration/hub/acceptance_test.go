package hub_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

var everything = []string{"cluster role", "cluster role binding", "lease", "namespace", "registration binding", "work binding"}

// TestAcceptance is the life of clusters on one hub, each subtest with its own.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	writes := newWrites()
	e.start(t, defaults(), writes.Wrap)

	t.Run("a cluster that nobody accepted has nothing on the hub", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "waiting")
		e.cluster(t, "waiting-marker", acceptedFromTheStart)
		e.awaitAccepted(t, "waiting-marker") // By now the other was looked at.
		if got := e.has(t.Context(), t, "waiting"); len(got) > 0 {
			t.Errorf("got %v", got)
		}
		if c := e.get(t.Context(), t, "waiting"); len(c.Finalizers) > 0 || len(c.Status.Conditions) > 0 {
			t.Errorf("got %v, %v", c.Finalizers, c.Status.Conditions)
		}
	})
	t.Run("accepting takes eight writes and looking again none", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "counted")
		e.accept(t, "counted")
		cluster := e.awaitAccepted(t, "counted")
		if diff := cmp.Diff(everything, e.has(t.Context(), t, "counted")); diff != "" {
			t.Errorf("on the hub (-want +got):\n%s", diff)
		}
		want := []string{names.FinalizerRegistration, names.FinalizerResourceCleanup}
		if diff := cmp.Diff(want, cluster.Finalizers); diff != "" {
			t.Errorf("finalizers (-want +got):\n%s", diff)
		}
		if !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced) {
			t.Error("the clock is not called synced")
		}
		// Something that reconciles the cluster again, then a marker behind it.
		e.patch(t, "counted", `{"metadata":{"annotations":{"`+names.AnnotationForceDetach+`":"false"}}}`)
		e.cluster(t, "counted-marker", acceptedFromTheStart)
		e.awaitAccepted(t, "counted-marker")
		var own []string
		for _, w := range writes.About("counted") {
			if !strings.Contains(w, "counted-marker") {
				own = append(own, w)
			}
		}
		// The role and the bindings are applied once more where the cache shows them
		// too late.
		if len(own) > 8+4 {
			t.Errorf("%d writes:\n%s", len(own), strings.Join(own, "\n"))
		}
	})
	t.Run("the agent may do what it needs and nothing else", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "mine", acceptedFromTheStart)
		e.cluster(t, "theirs", acceptedFromTheStart)
		e.awaitAccepted(t, "mine")
		e.awaitAccepted(t, "theirs")
		e.checkIsolation(t, "mine", "theirs")
	})
	t.Run("a denied cluster loses its access at once and keeps its namespace", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "denied", acceptedFromTheStart)
		e.awaitAccepted(t, "denied")
		e.work(t, "denied", "held", names.FinalizerManifestWork)
		cluster := e.deny(t, "denied")
		condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
		if condition.Message != names.MessageHubDenied {
			t.Errorf("message %q", condition.Message)
		}
		want := []string{"cluster role", "cluster role binding", "lease", "namespace"}
		if diff := cmp.Diff(want, e.has(t.Context(), t, "denied")); diff != "" {
			t.Errorf("on the hub (-want +got):\n%s", diff)
		}
		agent := e.agent(t, "denied")
		if err := agent.Get(t.Context(), client.ObjectKey{Name: "denied"}, cluster); err != nil {
			t.Errorf("the agent cannot see that it is denied: %v", err)
		}
		if err := agent.List(t.Context(), &workv1.ManifestWorkList{}, client.InNamespace("denied")); !apierrors.IsForbidden(err) {
			t.Errorf("the agent reads its works: %v", err)
		}
		e.accept(t, "denied")
		e.awaitAccepted(t, "denied")
		e.awaitPlace(t, "denied", everything...) // The cache may show late what the denial took away.
	})
	t.Run("what others break is repaired", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "drift", acceptedFromTheStart)
		e.awaitAccepted(t, "drift")
		e.checkRepair(t, "drift")
	})
	t.Run("HubApprovedJoin says what HubAcceptedManagedCluster says", func(t *testing.T) {
		t.Parallel()
		mirrored := func(c *clusterv1.ManagedCluster) bool {
			condition := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
			mirror := apimeta.FindStatusCondition(c.Status.Conditions, names.ConditionHubApprovedJoin)
			return condition != nil && mirror != nil && condition.Status == mirror.Status && condition.Reason == mirror.Reason && condition.Message == mirror.Message
		}
		e.cluster(t, "mirrored", acceptedFromTheStart)
		if c := e.awaitAccepted(t, "mirrored"); !mirrored(c) {
			t.Errorf("accepted: %+v", c.Status.Conditions)
		}
		if c := e.deny(t, "mirrored"); !mirrored(c) {
			t.Errorf("denied: %+v", c.Status.Conditions)
		}
		conditions := e.get(t.Context(), t, "mirrored").Status.Conditions
		apimeta.SetStatusCondition(&conditions, metav1.Condition{Type: names.ConditionHubApprovedJoin, Status: metav1.ConditionTrue, Reason: "Forged"})
		data, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
		if err != nil {
			t.Fatal(err)
		}
		e.patchStatus(t, "mirrored", string(data))
		e.awaitCluster(t, "mirrored", "mirrored again", mirrored)
	})
	t.Run("one cluster that joined under two names is reported", func(t *testing.T) {
		t.Parallel()
		withID := func(c *clusterv1.ManagedCluster) {
			c.Annotations = map[string]string{names.AnnotationClusterID: "0b8a6a5e-twin"}
		}
		e.cluster(t, "twin-a", acceptedFromTheStart, withID)
		e.cluster(t, "twin-b", withID) // One that the hub does not accept has not joined.
		e.cluster(t, "single", acceptedFromTheStart)
		e.awaitAccepted(t, "twin-a")
		if c := apimeta.FindStatusCondition(e.awaitAccepted(t, "single").Status.Conditions, names.ConditionClusterIDConflict); c != nil {
			t.Errorf("a cluster without an id: %+v", c)
		}
		if c := apimeta.FindStatusCondition(e.get(t.Context(), t, "twin-a").Status.Conditions, names.ConditionClusterIDConflict); c != nil {
			t.Errorf("before there is another: %+v", c)
		}
		e.accept(t, "twin-b")
		for name, other := range map[string]string{"twin-a": "twin-b", "twin-b": "twin-a"} {
			c := e.awaitCondition(t, name, names.ConditionClusterIDConflict, metav1.ConditionTrue, names.ReasonJoinedTwice)
			if m := apimeta.FindStatusCondition(c.Status.Conditions, names.ConditionClusterIDConflict).Message; !strings.Contains(m, "also registered as "+other+";") {
				t.Errorf("%s: %s", name, m)
			}
		}
		e.delete(t, "twin-b")
		e.awaitCondition(t, "twin-a", names.ConditionClusterIDConflict, metav1.ConditionFalse, names.ReasonJoinedOnce)
	})
	t.Run("a name that is not for clusters is refused", func(t *testing.T) {
		t.Parallel()
		for _, name := range []string{"kube-system", "open-cluster-management-hub"} {
			e.awaitForeign(t, name)
			// Neither may somebody hand it over.
			e.label(t, name, name)
			eventually(t, "admission sees that "+name+" is handed over", func(ctx context.Context) (bool, error) {
				cluster := e.named(name)
				acceptedFromTheStart(cluster)
				return e.admin.Create(ctx, cluster) == nil, nil
			})
			cluster := e.awaitCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, names.ReasonHubError)
			if len(cluster.Finalizers) > 0 {
				t.Errorf("%s: finalizers %v", name, cluster.Finalizers)
			}
			if err := e.admin.Delete(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
			e.awaitGone(t, cluster)
		}
		for _, name := range []string{"registration", "work", "managed-clusters", "a.b"} {
			if err := e.admin.Create(t.Context(), e.named(name)); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
				t.Errorf("%s: admission says %v", name, err)
			}
		}
		if got := e.has(t.Context(), t, "kube-system"); !slices.Equal(got, []string{"namespace"}) {
			t.Errorf("kube-system: %v", got)
		}
	})
}

// TestClusterWithoutSpec: a ManagedCluster needs no spec, and no policy trips over it.
func TestClusterWithoutSpec(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, defaults(), nil)
	bare := &unstructured.Unstructured{}
	bare.SetAPIVersion(clusterv1.GroupVersion.String())
	bare.SetKind("ManagedCluster")
	bare.SetName("bare")
	if err := e.admin.Create(t.Context(), bare); err != nil {
		t.Fatal(err)
	}
	if err := e.admin.Patch(t.Context(), bare, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))); err != nil {
		t.Fatal(err)
	}
	if err := e.admin.Patch(t.Context(), bare, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`))); err != nil {
		t.Fatal(err)
	}
	e.awaitAccepted(t, "bare")
}

// TestForeignNamespace: a namespace that is not a cluster's is never made one's,
// unless somebody hands it over.
func TestForeignNamespace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, defaults(), nil)
	for _, name := range []string{"default", "kube-public"} {
		e.awaitForeign(t, name)
	}
	e.bare(t, "late")
	e.namespace(t, "late")
	eventually(t, "the cluster is not accepted", func(context.Context) (bool, error) {
		err := e.admin.Patch(t.Context(), e.named("late"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hubAcceptsClient":true}}`)), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "kubectl label namespace late"), nil
	})
	// Admission does not see whose cluster's it is, nor one that comes later.
	e.namespace(t, "other", names.LabelClusterName, "c1")
	e.cluster(t, "other", acceptedFromTheStart)
	cluster := e.awaitCondition(t, "other", clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, names.ReasonHubError)
	condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	if !strings.Contains(condition.Message, "kubectl label namespace other") {
		t.Errorf("message %q", condition.Message)
	}
	if diff := cmp.Diff([]string{"namespace"}, e.has(t.Context(), t, "other")); diff != "" {
		t.Errorf("on the hub (-want +got):\n%s", diff)
	}
	e.label(t, "other", "other")
	e.awaitAccepted(t, "other")
	e.awaitAgent(t, "other", "a1")
	// What the cluster has already is repaired.
	e.label(t, "other", "c1")
	eventually(t, "the label is back", func(ctx context.Context) (bool, error) {
		var namespace corev1.Namespace
		err := e.admin.Get(ctx, client.ObjectKey{Name: "other"}, &namespace)
		return namespace.Labels[names.LabelClusterName] == "other", err
	})
}

// awaitForeign waits until admission refuses a cluster for its namespace.
func (e *env) awaitForeign(t *testing.T, name string) {
	t.Helper()
	eventually(t, "a cluster called "+name+" is refused", func(ctx context.Context) (bool, error) {
		err := e.admin.Create(ctx, e.named(name), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "is not a cluster's"), nil
	})
}

func (e *env) namespace(t *testing.T, name string, label ...string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if len(label) == 2 {
		namespace.Labels = map[string]string{label[0]: label[1]}
	}
	if err := e.admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
}

// label says that a namespace is a cluster's.
func (e *env) label(t *testing.T, namespace, cluster string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+names.LabelClusterName+`":"`+cluster+`"}}}`))
	if err := e.admin.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, patch); err != nil {
		t.Fatal(err)
	}
}

func acceptedFromTheStart(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true }

func (e *env) checkIsolation(t *testing.T, own, other string) {
	t.Helper()
	ctx, agent := t.Context(), e.agent(t, own)
	for _, tc := range []struct {
		what    string
		do      func(cluster string) error
		foreign bool // whether it must work on one's own cluster only
	}{
		{"read the cluster", func(c string) error { return agent.Get(ctx, client.ObjectKey{Name: c}, &clusterv1.ManagedCluster{}) }, true},
		{"report the cluster's status", func(c string) error {
			return agent.Status().Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: c}},
				client.RawPatch("application/merge-patch+json", []byte(`{"status":{"version":{"kubernetes":"v1"}}}`)))
		}, true},
		{"renew the lease", func(c string) error {
			var lease coordinationv1.Lease
			if err := agent.Get(ctx, client.ObjectKey{Namespace: c, Name: names.ManagedClusterLease}, &lease); err != nil {
				return err
			}
			return agent.Update(ctx, &lease)
		}, true},
		{"list works", func(c string) error { return agent.List(ctx, &workv1.ManifestWorkList{}, client.InNamespace(c)) }, true},
		{"create an event", func(c string) error {
			return agent.Create(ctx, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{GenerateName: "x", Namespace: c},
				InvolvedObject: corev1.ObjectReference{Kind: "ManagedCluster", Name: c, Namespace: c},
			})
		}, true},
	} {
		if err := tc.do(own); err != nil {
			t.Errorf("%s: own: %v", tc.what, err)
		}
		if err := tc.do(other); !apierrors.IsForbidden(err) {
			t.Errorf("%s: another's: %v, want forbidden", tc.what, err)
		}
	}
	for what, err := range map[string]error{
		"create a lease":  agent.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "x"}}),
		"read secrets":    agent.List(ctx, &corev1.SecretList{}, client.InNamespace(own)),
		"delete itself":   agent.Delete(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: own}}),
		"list all leases": agent.List(ctx, &coordinationv1.LeaseList{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want forbidden", what, err)
		}
	}
}

// checkRepair deletes and changes what the cluster has, one after the other.
func (e *env) checkRepair(t *testing.T, cluster string) {
	t.Helper()
	ctx := t.Context()
	for what, object := range placeOf(cluster) {
		if what == "namespace" {
			continue // It does not go while anything is in it.
		}
		if what == "work binding" {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
			if err := e.admin.Patch(ctx, object, patch); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.admin.Delete(ctx, object); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		eventually(t, what+" is back", func(ctx context.Context) (bool, error) {
			err := e.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
			return err == nil && object.GetDeletionTimestamp() == nil, client.IgnoreNotFound(err)
		})
	}
	role := &rbacv1.ClusterRole{}
	key := client.ObjectKey{Name: names.ManagedClusterClusterRole(cluster)}
	if err := e.admin.Get(ctx, key, role); err != nil {
		t.Fatal(err)
	}
	rules := slices.Clone(role.Rules)
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	if err := e.admin.Update(ctx, role); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the added rule is gone", func(ctx context.Context) (bool, error) {
		err := e.admin.Get(ctx, key, role)
		return cmp.Equal(role.Rules, rules), err
	})
	// A binding to another role cannot be changed back, only replaced.
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}
	if err := e.admin.Delete(ctx, binding); err != nil {
		t.Fatal(err)
	}
	forged := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: key.Name, Labels: map[string]string{names.LabelClusterName: cluster}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	if err := e.admin.Create(ctx, forged); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	eventually(t, "the binding is the cluster's again", func(ctx context.Context) (bool, error) {
		err := e.admin.Get(ctx, key, binding)
		return err == nil && binding.RoleRef.Name == key.Name && len(binding.Subjects) == 1 && binding.Subjects[0].Name == names.AgentUser(cluster, "a1"), client.IgnoreNotFound(err)
	})
}

// work creates a ManifestWork that finalizers hold.
func (e *env) work(t *testing.T, cluster, name string, finalizers ...string) {
	t.Helper()
	work := installation.Work(cluster, name)
	work.Finalizers = finalizers
	if err := e.admin.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
}
