package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// granting is a hub with the csr driver and one that grants.
func granting(outside *drivertest.Outside) hub.Config {
	config := defaults()
	config.Drivers = append(config.Drivers, hub.Driver{Hub: &drivertest.FakeGranter{
		Outside: outside, AdmitPrefix: "auto-", Check: 100 * time.Millisecond,
	}})
	return config
}

// registeredAs has a cluster register with the driver that grants.
func registeredAs(id string) func(*clusterv1.ManagedCluster) {
	return func(c *clusterv1.ManagedCluster) { c.Annotations = drivertest.FakeIdentity(id) }
}

// granted is what exists outside of a cluster under an identifier.
func granted(cluster, id string) []string {
	return []string{
		drivertest.FakeEntry(id) + " is group " + names.MappedClusterGroup(cluster),
		drivertest.FakeRole(id) + " is trusting " + id,
	}
}

// awaitOutside waits until exactly want exists under an identifier.
func awaitOutside(t *testing.T, outside *drivertest.Outside, id string, want []string) {
	t.Helper()
	var got []string
	eventually(t, id+" is "+strings.Join(want, ", "), func(context.Context) (bool, error) {
		got = under(outside, id)
		return slices.Equal(got, want), nil
	}, func() any { return got })
}

func under(outside *drivertest.Outside, id string) []string {
	return slices.DeleteFunc(outside.Objects(), func(o string) bool { return !strings.Contains(o, "/"+id+" ") })
}

func (e *env) awaitGrant(t *testing.T, name string, status metav1.ConditionStatus, reason string) *clusterv1.ManagedCluster {
	t.Helper()
	return e.awaitCondition(t, name, names.ConditionRegistrationGranted, status, reason)
}

func (e *env) awaitGranted(t *testing.T, name string) *clusterv1.ManagedCluster {
	t.Helper()
	return e.awaitGrant(t, name, metav1.ConditionTrue, names.ReasonGranted)
}

func messageOf(c *clusterv1.ManagedCluster) string {
	return apimeta.FindStatusCondition(c.Status.Conditions, names.ConditionRegistrationGranted).Message
}

// records lists the records of a cluster.
func (e *env) records(ctx context.Context, t *testing.T, cluster string) []corev1.ConfigMap {
	t.Helper()
	var list corev1.ConfigMapList
	err := e.admin.List(ctx, &list, client.InNamespace(names.HubNamespace), client.MatchingLabels{names.LabelClusterName: cluster})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// awaitNoGrant waits until nothing of a grant is left on a cluster that stays.
func (e *env) awaitNoGrant(t *testing.T, name string) {
	t.Helper()
	e.awaitCluster(t, name, "without a grant", func(c *clusterv1.ManagedCluster) bool {
		return !slices.Contains(c.Finalizers, names.FinalizerGrants) && len(e.records(t.Context(), t, name)) == 0
	})
}

// awaitHolder waits until a subject, and nothing else, has the rights of a cluster.
func (e *env) awaitHolder(t *testing.T, cluster, subject string) {
	t.Helper()
	var last []string
	eventually(t, subject+" has the rights of "+cluster, func(ctx context.Context) (bool, error) {
		last = nil
		for _, key := range []client.ObjectKey{
			{Name: names.ManagedClusterClusterRole(cluster)},
			{Namespace: cluster, Name: names.RegistrationRoleBinding(cluster)},
			{Namespace: cluster, Name: names.WorkRoleBinding(cluster)},
		} {
			subjects, err := e.subjects(ctx, key)
			if client.IgnoreNotFound(err) != nil {
				return false, err
			}
			last = append(last, subjects...)
		}
		return slices.Equal(last, []string{subject, subject, subject}), nil
	}, func() any { return last })
}

// TestGrants is the life of clusters whose identity is granted outside the hub,
// each subtest with its own.
func TestGrants(t *testing.T) {
	t.Parallel()
	e, outside := newEnv(t), drivertest.NewOutside()
	writes := newWrites()
	e.start(t, granting(outside), writes.Wrap)

	t.Run("a service that fails has no part in acceptance", func(t *testing.T) {
		t.Parallel()
		outside.Break("flaky")
		e.bare(t, "flaky", acceptedFromTheStart, registeredAs("flaky"))
		before := apimeta.FindStatusCondition(e.awaitAccepted(t, "flaky").Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
		cluster := e.awaitGrant(t, "flaky", metav1.ConditionFalse, names.ReasonGrantFailed)
		if !strings.Contains(messageOf(cluster), "role/flaky") || !strings.Contains(messageOf(cluster), "503") {
			t.Errorf("message %q", messageOf(cluster))
		}
		if !slices.Contains(cluster.Finalizers, names.FinalizerGrants) || len(e.records(t.Context(), t, "flaky")) != 1 {
			t.Errorf("before anything exists outside there is no record: %v", cluster.Finalizers)
		}
		e.awaitHolder(t, "flaky", names.MappedClusterGroup("flaky"))
		outside.Repair("flaky")
		cluster = e.awaitGranted(t, "flaky")
		if diff := cmp.Diff(granted("flaky", "flaky"), under(outside, "flaky")); diff != "" {
			t.Errorf("outside (-want +got):\n%s", diff)
		}
		after := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the acceptance changed (-before +after):\n%s", diff)
		}
		err := e.admin.Patch(t.Context(), e.named("flaky"), client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"`+drivertest.FakeAnnotation+`":"fake:other"}}}`)))
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("an administrator changes who an accepted cluster is: %v", err)
		}
	})
	t.Run("a cluster with a certificate has nothing to do with grants", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "certified", acceptedFromTheStart)
		e.awaitAgent(t, "certified", "a1")
		e.bare(t, "certified-marker", acceptedFromTheStart, registeredAs("certified-marker"))
		e.awaitGranted(t, "certified-marker")
		cluster := e.get(t.Context(), t, "certified")
		if slices.Contains(cluster.Finalizers, names.FinalizerGrants) || len(e.records(t.Context(), t, "certified")) > 0 ||
			apimeta.FindStatusCondition(cluster.Status.Conditions, names.ConditionRegistrationGranted) != nil {
			t.Errorf("got %v, %v", cluster.Finalizers, cluster.Status.Conditions)
		}
	})
	t.Run("a second cluster with an identifier is refused", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "twin-1", acceptedFromTheStart, registeredAs("twin"))
		e.awaitGranted(t, "twin-1")
		e.bare(t, "twin-2", acceptedFromTheStart, registeredAs("twin"))
		cluster := e.awaitGrant(t, "twin-2", metav1.ConditionFalse, names.ReasonIdentifierConflict)
		if !strings.Contains(messageOf(cluster), "luster twin-2 has the identifier twin of cluster twin-1") {
			t.Errorf("message %q", messageOf(cluster))
		}
		e.awaitAccepted(t, "twin-2")
		e.describes(t, "twin-1", names.ReasonIdentifierConflict, "twin-2")
		if diff := cmp.Diff(granted("twin-1", "twin"), under(outside, "twin")); diff != "" {
			t.Errorf("outside (-want +got):\n%s", diff)
		}
		e.awaitGranted(t, "twin-1")
		e.delete(t, "twin-1")
		e.awaitGone(t, e.named("twin-1"))
		e.awaitGranted(t, "twin-2")
		awaitOutside(t, outside, "twin", granted("twin-2", "twin"))
	})
	t.Run("a denied cluster loses its grant at once and gets it again when accepted", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "turned", acceptedFromTheStart, registeredAs("turned"))
		e.awaitGranted(t, "turned")
		e.work(t, "turned", "held", names.FinalizerManifestWork)
		e.deny(t, "turned")
		e.awaitGrant(t, "turned", metav1.ConditionFalse, names.ReasonRevoked)
		awaitOutside(t, outside, "turned", nil)
		e.awaitNoGrant(t, "turned")
		e.awaitPlace(t, "turned", "cluster role", "lease", "namespace")
		e.accept(t, "turned")
		e.awaitGranted(t, "turned")
		awaitOutside(t, outside, "turned", granted("turned", "turned"))
		e.awaitHolder(t, "turned", names.MappedClusterGroup("turned"))
	})
	t.Run("a cluster keeps its grant until its works are gone, and stays until the grant is", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "going", acceptedFromTheStart, registeredAs("going"))
		e.awaitGranted(t, "going")
		e.work(t, "going", "w1", names.FinalizerManifestWork)
		e.delete(t, "going")
		e.awaitMessage(t, "going", "The resource manifestworks is remaning, the remaining count is 1, the finalizer pending count is 1")
		outside.Set(drivertest.FakeEntry("going"), "")
		awaitOutside(t, outside, "going", granted("going", "going")) // The agent needs it still.
		outside.Break("going")
		e.release(t, "going", "w1")
		cluster := e.awaitGrant(t, "going", metav1.ConditionFalse, names.ReasonRevokeFailed)
		if !strings.Contains(messageOf(cluster), "entry/going") {
			t.Errorf("message %q", messageOf(cluster))
		}
		if diff := cmp.Diff([]string{names.FinalizerGrants}, cluster.Finalizers); diff != "" {
			t.Errorf("what waits (-want +got):\n%s", diff)
		}
		outside.Repair("going")
		e.awaitGone(t, e.named("going"))
		if got := under(outside, "going"); len(got) > 0 || len(e.records(t.Context(), t, "going")) > 0 {
			t.Errorf("the cluster is gone and has %v", got)
		}
	})
	t.Run("what is recorded is revoked when somebody takes the finalizers away", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "stripped", acceptedFromTheStart, registeredAs("stripped"))
		e.awaitGranted(t, "stripped")
		e.patch(t, "stripped", `{"metadata":{"finalizers":null}}`)
		e.delete(t, "stripped")
		awaitOutside(t, outside, "stripped", nil)
		eventually(t, "the record is gone", func(ctx context.Context) (bool, error) {
			return len(e.records(ctx, t, "stripped")) == 0, nil
		})
	})
	t.Run("what somebody changes outside is repaired, and looking writes nothing", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "drift", acceptedFromTheStart, registeredAs("drift"))
		e.awaitGranted(t, "drift")
		e.awaitHolder(t, "drift", names.MappedClusterGroup("drift"))
		before := len(besidesRights(writes.About("drift")))
		for _, name := range []string{drivertest.FakeRole("drift"), drivertest.FakeEntry("drift")} {
			for _, content := range []string{"", "something else"} {
				outside.Set(name, content)
				awaitOutside(t, outside, "drift", granted("drift", "drift"))
			}
		}
		if after := besidesRights(writes.About("drift")); len(after) != before {
			t.Errorf("repairs outside wrote to the hub:\n%s", strings.Join(after[before:], "\n"))
		}
	})
	t.Run("a record that somebody deletes is made again", func(t *testing.T) {
		t.Parallel()
		e.bare(t, "lost", acceptedFromTheStart, registeredAs("lost"))
		e.awaitGranted(t, "lost")
		record := e.records(t.Context(), t, "lost")[0]
		if err := e.admin.Delete(t.Context(), &record); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the record is back", func(ctx context.Context) (bool, error) {
			found := e.records(ctx, t, "lost")
			return len(found) == 1 && found[0].UID != record.UID, nil
		})
	})
	t.Run("annotations that cannot be used are reported", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "spoiled", acceptedFromTheStart, func(c *clusterv1.ManagedCluster) {
			c.Annotations = map[string]string{drivertest.FakeAnnotation: "nonsense"}
		})
		e.awaitAccepted(t, "spoiled")
		e.awaitGrant(t, "spoiled", metav1.ConditionFalse, names.ReasonInvalidRegistration)
		e.awaitPlace(t, "spoiled", "lease", "namespace")
		e.awaitNoGrant(t, "spoiled")
	})
	t.Run("a cluster that changes its driver has the rights of one identity", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "changing", acceptedFromTheStart)
		e.awaitAgent(t, "changing", "a1")
		e.deny(t, "changing")
		e.patch(t, "changing", `{"metadata":{"annotations":{"`+drivertest.FakeAnnotation+`":"fake:changing"}}}`)
		e.accept(t, "changing")
		e.awaitGranted(t, "changing")
		e.awaitHolder(t, "changing", names.MappedClusterGroup("changing"))
		e.checkWorthless(t, "changing", "a1")
		e.deny(t, "changing")
		e.awaitGrant(t, "changing", metav1.ConditionFalse, names.ReasonRevoked)
		e.patch(t, "changing", `{"metadata":{"annotations":{"`+drivertest.FakeAnnotation+`":null}}}`)
		e.accept(t, "changing")
		e.awaitAccepted(t, "changing")
		e.awaitPlace(t, "changing", "cluster role", "lease", "namespace") // Nobody's until a request is approved.
		e.approve(t, e.request(t, "changing", "a2"))
		e.awaitAgent(t, "changing", "a2")
		e.awaitNoGrant(t, "changing")
		e.awaitCluster(t, "changing", "without the condition", func(c *clusterv1.ManagedCluster) bool {
			return apimeta.FindStatusCondition(c.Status.Conditions, names.ConditionRegistrationGranted) == nil
		})
		if got := under(outside, "changing"); len(got) > 0 {
			t.Errorf("outside is left %v", got)
		}
	})
}

// recordsToo also finds the writes of records, whose paths name no cluster.
func recordsToo(write, cluster string) bool {
	return concerns(write, cluster) || strings.Contains(write, "/namespaces/"+names.HubNamespace+"/configmaps")
}

// TestGrantsResume kills the hub after each of its writes, of granting and of
// revoking, and starts another.
func TestGrantsResume(t *testing.T) {
	t.Parallel()
	e, outside := newEnv(t), drivertest.NewOutside()
	killed := func(t *testing.T, name string, n int, done func(context.Context) (bool, error)) bool {
		t.Helper()
		writes := interrupt.After(n, name, recordsToo)
		end := e.run(t, granting(outside), writes.Wrap)
		defer func() { _ = end() }() // It may want to try its last event again.
		return writes.AwaitCut(t, patience, done)
	}
	reached := func(name string, status metav1.ConditionStatus) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			c := e.get(ctx, t, name)
			return apimeta.IsStatusConditionPresentAndEqual(c.Status.Conditions, names.ConditionRegistrationGranted, status) &&
				(status == metav1.ConditionTrue || !slices.Contains(c.Finalizers, names.FinalizerGrants)), nil
		}
	}
	const most = 20 // More writes than either takes.
	for n := 1; n <= most; n++ {
		name := fmt.Sprintf("k%02d", n)
		e.bare(t, name, acceptedFromTheStart, registeredAs(name))
		cut := killed(t, name, n, reached(name, metav1.ConditionTrue))
		stop := e.start(t, granting(outside), nil)
		e.awaitGranted(t, name)
		stop()
		if diff := cmp.Diff(granted(name, name), under(outside, name)); diff != "" {
			t.Errorf("killed after write %d (-want +got):\n%s", n, diff)
		}
		if got := e.records(t.Context(), t, name); len(got) != 1 {
			t.Errorf("killed after write %d: %d records", n, len(got))
		}
		if !cut {
			break
		}
	}
	for n := 1; n <= most; n++ {
		name := fmt.Sprintf("d%02d", n)
		e.bare(t, name, acceptedFromTheStart, registeredAs(name))
		stop := e.start(t, granting(outside), nil)
		e.awaitGranted(t, name)
		stop()
		e.patch(t, name, `{"spec":{"hubAcceptsClient":false}}`)
		cut := killed(t, name, n, reached(name, metav1.ConditionFalse))
		stop = e.start(t, granting(outside), nil)
		e.awaitGrant(t, name, metav1.ConditionFalse, names.ReasonRevoked)
		e.awaitNoGrant(t, name)
		stop()
		if got := under(outside, name); len(got) > 0 {
			t.Errorf("killed after write %d: %v is left", n, got)
		}
		if !cut {
			break
		}
	}
}

// TestGrantsOfAnAbsentHub: what happens while no hub runs, or one without the
// driver, is made good by the next.
func TestGrantsOfAnAbsentHub(t *testing.T) {
	t.Parallel()
	e, outside := newEnv(t), drivertest.NewOutside()
	stop := e.start(t, granting(outside), nil)
	for _, name := range []string{"swept", "moved", "orphan", "kept"} {
		e.bare(t, name, acceptedFromTheStart, registeredAs(name))
		e.awaitGranted(t, name)
	}
	stop()

	e.patch(t, "swept", `{"metadata":{"finalizers":null}}`)
	e.delete(t, "swept")
	e.awaitGone(t, e.named("swept"))
	e.patch(t, "moved", `{"spec":{"hubAcceptsClient":false},"metadata":{"annotations":{"`+drivertest.FakeAnnotation+`":"fake:elsewhere"}}}`)
	e.accept(t, "moved")

	stop = e.start(t, defaults(), nil) // Without the driver.
	e.awaitEvent(t, names.ReasonDriverNotEnabled, "cluster swept")
	e.delete(t, "orphan")
	cluster := e.awaitGrant(t, "orphan", metav1.ConditionFalse, names.ReasonDriverNotEnabled)
	e.awaitGrant(t, "kept", metav1.ConditionFalse, names.ReasonDriverNotEnabled)
	if !strings.Contains(messageOf(cluster), names.AnnotationAbandonGrants) || !strings.Contains(messageOf(cluster), "role=role/orphan") {
		t.Errorf("message %q", messageOf(cluster))
	}
	e.patch(t, "orphan", `{"metadata":{"annotations":{"`+names.AnnotationAbandonGrants+`":"true"}}}`)
	e.awaitGone(t, e.named("orphan"))
	e.describes(t, "orphan", "GrantAbandoned", "role=role/orphan")
	if diff := cmp.Diff(granted("orphan", "orphan"), under(outside, "orphan")); diff != "" {
		t.Errorf("what a person removes (-want +got):\n%s", diff)
	}
	stop()

	e.start(t, granting(outside), nil)
	e.awaitGranted(t, "kept")
	e.awaitGranted(t, "moved")
	awaitOutside(t, outside, "swept", nil)
	awaitOutside(t, outside, "moved", nil)
	awaitOutside(t, outside, "elsewhere", granted("moved", "elsewhere"))
	if got := e.records(t.Context(), t, "moved"); len(got) != 1 {
		t.Errorf("%d records of a cluster with one grant", len(got))
	}
}

// TestDriversAdmit: a cluster that a driver does not admit is left to a person,
// and an event says why.
func TestDriversAdmit(t *testing.T) {
	t.Parallel()
	e, outside := newEnv(t), drivertest.NewOutside()
	config := granting(outside)
	config.AutoApprove = true
	e.start(t, config, nil)
	e.bare(t, "other", registeredAs("manual-1"))
	e.bare(t, "known", registeredAs("auto-1"))
	e.awaitGranted(t, "known")
	e.awaitEvent(t, "ManagedClusterNotAutoApproved", `the identifier manual-1 does not begin with "auto-"`)
	// It is looked at again, then a marker behind it.
	for _, value := range []string{`"false"`, `null`} {
		e.patch(t, "other", `{"metadata":{"annotations":{"`+names.AnnotationForceDetach+`":`+value+`}}}`)
		marker := "marker" + strings.Trim(value, `"`)
		e.bare(t, marker, registeredAs("auto-"+marker))
		e.awaitGranted(t, marker)
	}
	if e.get(t.Context(), t, "other").Spec.HubAcceptsClient {
		t.Error("it is accepted")
	}
	var events corev1.EventList
	if err := e.admin.List(t.Context(), &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	told := slices.DeleteFunc(events.Items, func(event corev1.Event) bool { return event.Reason != "ManagedClusterNotAutoApproved" })
	if len(told) != 1 || told[0].Series != nil {
		t.Errorf("it was told more than once: %+v", told)
	}
	// It is looked at again when it says that it is somebody else.
	e.patch(t, "other", `{"metadata":{"annotations":{"`+drivertest.FakeAnnotation+`":"fake:auto-2"}}}`)
	e.awaitGranted(t, "other")
}
