package hub_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/leave"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestDetach deletes clusters in every state.
func TestDetach(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, defaults(), nil)

	t.Run("a cluster that was never accepted goes at once", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "never")
		e.delete(t, "never")
		e.awaitGone(t, e.named("never"))
	})
	t.Run("add-ons go first and works by priority while the agent may still clean up", func(t *testing.T) {
		t.Parallel()
		e.checkOrder(t, "ordered")
	})
	t.Run("force lets go what waits for an agent and says what it left", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "dead", acceptedFromTheStart)
		e.awaitAccepted(t, "dead")
		e.addOn(t, "dead", "addon.open-cluster-management.io/addon-pre-delete")
		e.work(t, "dead", "w1", names.FinalizerManifestWork)
		e.work(t, "dead", "w2", names.FinalizerManifestWork, "example.com/other")
		e.delete(t, "dead")
		e.awaitCondition(t, "dead", clusterv1.ManagedClusterConditionDeleting, metav1.ConditionFalse, clusterv1.ConditionDeletingReasonResourceRemaining)
		e.patch(t, "dead", `{"metadata":{"annotations":{"`+names.AnnotationForceDetach+`":"true"}}}`)
		// A finalizer that waits for somebody else than the agent is not ours to take.
		eventually(t, "only the other's finalizer is left", func(ctx context.Context) (bool, error) {
			var works workv1.ManifestWorkList
			err := e.admin.List(ctx, &works, client.InNamespace("dead"))
			return len(works.Items) == 1 && slices.Equal(works.Items[0].Finalizers, []string{"example.com/other"}), err
		})
		e.release(t, "dead", "w2")
		e.awaitGone(t, e.named("dead"))
		e.describes(t, "dead", "ForcedDetach", "w1, w2")
		e.awaitPlace(t, "dead", "lease", "namespace")
	})
	t.Run("a denied cluster can be deleted", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "turned", acceptedFromTheStart)
		e.awaitAccepted(t, "turned")
		e.deny(t, "turned")
		e.delete(t, "turned")
		e.awaitGone(t, e.named("turned"))
		e.awaitPlace(t, "turned", "lease", "namespace")
	})
	t.Run("the agent of a cluster that was denied before can finish its works and nothing else", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "finishing", acceptedFromTheStart)
		e.awaitAccepted(t, "finishing")
		e.work(t, "finishing", "w1", names.FinalizerManifestWork)
		e.deny(t, "finishing")
		e.delete(t, "finishing")
		e.awaitPlace(t, "finishing", "lease", "namespace", "work binding")
		agent := e.agent(t, "finishing")
		eventually(t, "the agent lets its work go", func(ctx context.Context) (bool, error) {
			object := &workv1.ManifestWork{}
			err := agent.Get(ctx, client.ObjectKey{Namespace: "finishing", Name: "w1"}, object)
			if apierrors.IsForbidden(err) || object.DeletionTimestamp == nil {
				return false, nil
			}
			object.Finalizers = nil
			return err == nil, errors.Join(err, agent.Update(ctx, object))
		})
		if err := agent.Get(t.Context(), client.ObjectKey{Name: "finishing"}, e.named("finishing")); !apierrors.IsForbidden(err) {
			t.Errorf("the agent reads its ManagedCluster: %v", err)
		}
		e.awaitGone(t, e.named("finishing"))
		e.awaitPlace(t, "finishing", "lease", "namespace")
	})
	t.Run("unjoin on the hub leaves the agent what it needs to finish its works", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "hubside", acceptedFromTheStart)
		e.awaitAccepted(t, "hubside")
		e.work(t, "hubside", "w1", names.FinalizerManifestWork)
		admin, err := client.NewWithWatch(e.cp.Config(t), client.Options{Scheme: e.admin.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		runner := install.Runner{Client: admin, Clock: clock.RealClock{}, Step: func(ctx context.Context, _ string, fn func(context.Context, install.Say) error) error {
			return fn(ctx, func(string, ...any) {})
		}}
		if err := (hub.Runner{Runner: &runner}).Detach(t.Context(), "hubside", install.Removal{}); err != nil {
			t.Fatal(err)
		}
		agent, object := e.agent(t, "hubside"), &workv1.ManifestWork{}
		eventually(t, "the work is to be finished", func(ctx context.Context) (bool, error) {
			// At no moment may the agent lose its works.
			err := agent.Get(ctx, client.ObjectKey{Namespace: "hubside", Name: "w1"}, object)
			return object.DeletionTimestamp != nil, err
		})
		object.Finalizers = nil
		if err := agent.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		e.awaitGone(t, e.named("hubside"))
	})
	t.Run("a cluster that noted that it left is released", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "gone", acceptedFromTheStart)
		e.awaitAccepted(t, "gone")
		e.addOn(t, "gone", "addon.open-cluster-management.io/addon-pre-delete")
		e.work(t, "gone", "w1", names.FinalizerManifestWork)
		if err := leave.Resign(t.Context(), e.agent(t, "gone"), "gone"); err != nil {
			t.Fatal(err)
		}
		e.awaitCondition(t, "gone", clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, names.ReasonHubDenied)
		e.delete(t, "gone")
		e.awaitGone(t, e.named("gone"))
		e.describes(t, "gone", "ForcedDetach", "w1")
		e.awaitPlace(t, "gone", "lease", "namespace")
	})
	t.Run("a cluster that left and is back is not released", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "back", acceptedFromTheStart)
		e.awaitAccepted(t, "back")
		e.work(t, "back", "w1", names.FinalizerManifestWork)
		if err := leave.Resign(t.Context(), e.agent(t, "back"), "back"); err != nil {
			t.Fatal(err)
		}
		e.awaitCondition(t, "back", clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, names.ReasonHubDenied)
		e.accept(t, "back")
		e.awaitAccepted(t, "back")
		e.deny(t, "back")
		e.delete(t, "back")
		e.awaitMessage(t, "back", "The resource manifestworks is remaning, the remaining count is 1, the finalizer pending count is 1")
		if err := e.admin.Get(t.Context(), client.ObjectKey{Namespace: "back", Name: "w1"}, &workv1.ManifestWork{}); err != nil {
			t.Errorf("the work that the agent has to finish: %v", err)
		}
	})
	t.Run("what is left of a cluster whose finalizers were taken away is swept", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "stripped", acceptedFromTheStart)
		e.awaitAccepted(t, "stripped")
		e.work(t, "stripped", "w1")
		e.patch(t, "stripped", `{"metadata":{"finalizers":null}}`)
		e.delete(t, "stripped")
		e.awaitPlace(t, "stripped", "lease", "namespace")
		e.awaitGone(t, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "stripped", Name: "w1"}})
	})
}

func (e *env) checkOrder(t *testing.T, name string) {
	t.Helper()
	ctx := t.Context()
	e.cluster(t, name, acceptedFromTheStart)
	e.awaitAccepted(t, name)
	e.addOn(t, name, "example.com/held")
	for work, priority := range map[string]string{"none": "", "early": "10", "late": "100"} {
		e.work(t, name, work, names.FinalizerManifestWork)
		if priority != "" {
			object := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: work}}
			patch := `{"metadata":{"annotations":{"` + names.AnnotationCleanupPriority + `":"` + priority + `"}}}`
			if err := e.admin.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.delete(t, name)
	e.awaitMessage(t, name, "The resource managedclusteraddons is remaning, the remaining count is 1, the finalizer pending count is 1")
	if got := e.deleting(ctx, t, name); len(got) > 0 {
		t.Fatalf("works are deleted before the add-on is gone: %v", got)
	}
	e.awaitPlace(t, name, "lease", "namespace", "work binding")
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "a1"}}
	if err := e.admin.Patch(ctx, addOn, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	agent := e.agent(t, name)
	remaining := []string{"none", "early", "late"}
	for i, work := range remaining {
		eventually(t, work+" is being deleted", func(ctx context.Context) (bool, error) {
			return slices.Equal(e.deleting(ctx, t, name), []string{work}), nil
		})
		// The agent itself says that it has cleaned up.
		object := &workv1.ManifestWork{}
		if err := agent.Get(ctx, client.ObjectKey{Namespace: name, Name: work}, object); err != nil {
			t.Fatalf("the agent reads its work: %v", err)
		}
		object.Finalizers = nil
		if err := agent.Update(ctx, object); err != nil {
			t.Fatalf("the agent lets its work go: %v", err)
		}
		if i+1 < len(remaining) && apierrors.IsNotFound(e.admin.Get(ctx, client.ObjectKey{Name: name}, e.named(name))) {
			t.Fatal("the cluster is gone before its works are")
		}
	}
	e.awaitGone(t, e.named(name))
	e.awaitPlace(t, name, "lease", "namespace")
}

func (e *env) named(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (e *env) delete(t *testing.T, name string) {
	t.Helper()
	if err := e.admin.Delete(t.Context(), e.named(name)); err != nil {
		t.Fatal(err)
	}
}

func (e *env) release(t *testing.T, cluster, work string) {
	t.Helper()
	object := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: work}}
	if err := e.admin.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
}

// deleting returns the works of a cluster that are being deleted.
func (e *env) deleting(ctx context.Context, t *testing.T, cluster string) []string {
	t.Helper()
	var works workv1.ManifestWorkList
	if err := e.admin.List(ctx, &works, client.InNamespace(cluster)); err != nil {
		t.Fatal(err)
	}
	var found []string
	for i := range works.Items {
		if works.Items[i].DeletionTimestamp != nil {
			found = append(found, works.Items[i].Name)
		}
	}
	return found
}

// addOn makes the add-on a1 of a cluster.
func (e *env) addOn(t *testing.T, cluster string, finalizers ...string) {
	t.Helper()
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "a1", Finalizers: finalizers}}
	if err := e.admin.Create(t.Context(), addOn); err != nil {
		t.Fatal(err)
	}
}

func (e *env) awaitMessage(t *testing.T, name, message string) {
	t.Helper()
	e.awaitCluster(t, name, message, func(c *clusterv1.ManagedCluster) bool {
		condition := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionDeleting)
		return condition != nil && condition.Message == message
	})
}

// awaitPlace waits until exactly want is left of a cluster on the hub.
func (e *env) awaitPlace(t *testing.T, cluster string, want ...string) {
	t.Helper()
	var got []string
	eventually(t, cluster+" has "+strings.Join(want, ", "), func(ctx context.Context) (bool, error) {
		got = e.has(ctx, t, cluster)
		return cmp.Equal(got, want), nil
	}, func() any { return got })
}

// describes waits for an event about a ManagedCluster that kubectl describe finds, by the
// fields that it searches for.
func (e *env) describes(t *testing.T, cluster, reason, text string) {
	t.Helper()
	var found corev1.EventList
	eventually(t, "event "+reason, func(ctx context.Context) (bool, error) {
		err := e.admin.List(ctx, &found, client.MatchingFields{
			"involvedObject.kind": "ManagedCluster", "involvedObject.name": cluster, "involvedObject.namespace": "",
		})
		return slices.ContainsFunc(found.Items, func(event corev1.Event) bool {
			return event.Reason == reason && strings.Contains(event.Message, text)
		}), err
	}, func() any { return found.Items })
}

// awaitEvent waits for an event about something that has no namespace.
func (e *env) awaitEvent(t *testing.T, reason, text string) {
	t.Helper()
	var events corev1.EventList
	eventually(t, "event "+reason, func(ctx context.Context) (bool, error) {
		if err := e.admin.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return false, err
		}
		return slices.ContainsFunc(events.Items, func(event corev1.Event) bool {
			return event.Reason == reason && strings.Contains(event.Message, text)
		}), nil
	}, func() any { return events.Items })
}

// TestSharedRoles: they are there while there is a cluster.
func TestSharedRoles(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, defaults(), nil)
	e.cluster(t, "only")
	roles := []*rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterRoleRegistration}},
		{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterRoleWork}},
	}
	exist := func(ctx context.Context) (bool, error) {
		for _, role := range roles {
			if err := e.admin.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil {
				return false, client.IgnoreNotFound(err)
			}
			if value, ok := role.Labels[names.LabelClusterName]; !ok || value != "" {
				t.Errorf("%s: cluster label %q, %v", role.Name, value, ok)
			}
		}
		return true, nil
	}
	eventually(t, "the shared roles exist", exist)
	if err := e.admin.Delete(t.Context(), roles[0]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deleted role is back", exist)
	e.delete(t, "only")
	for _, role := range roles {
		e.awaitGone(t, role)
	}
}

// TestDetachWithoutCleanup: with the gate off nothing is deleted from the
// namespace, but works still keep the cluster until they are gone.
func TestDetachWithoutCleanup(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	stop := e.start(t, defaults(), nil)
	e.cluster(t, "before", acceptedFromTheStart) // With the finalizer of the gate.
	e.awaitAccepted(t, "before")
	stop()
	cfg := defaults()
	cfg.ResourceCleanup = false
	e.start(t, cfg, nil)
	e.delete(t, "before")
	e.awaitGone(t, e.named("before"))

	e.cluster(t, "c1", acceptedFromTheStart)
	cluster := e.awaitAccepted(t, "c1")
	if diff := cmp.Diff([]string{names.FinalizerRegistration}, cluster.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	e.addOn(t, "c1")
	e.work(t, "c1", "w1", names.FinalizerManifestWork)
	e.delete(t, "c1")
	e.awaitPlace(t, "c1", "lease", "namespace", "work binding")
	if got := e.deleting(t.Context(), t, "c1"); len(got) > 0 {
		t.Errorf("works are deleted: %v", got)
	}
	e.patch(t, "c1", `{"metadata":{"annotations":{"`+names.AnnotationForceDetach+`":"true"}}}`)
	e.awaitGone(t, e.named("c1"))
	e.describes(t, "c1", "ForcedDetach", "w1")
	addOn := &addonv1beta1.ManagedClusterAddOn{}
	if err := e.admin.Get(t.Context(), client.ObjectKey{Namespace: "c1", Name: "a1"}, addOn); err != nil {
		t.Errorf("the add-on, which nobody cleans up: %v", err)
	}
}
