package lease_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/lease"
)

const (
	grace = 5 * time.Minute
	// missed is how long after a renewal the next one was missed.
	missed = 2 * time.Minute
)

// hub is one process of the hub over what the API server holds, with a clock
// that only the test moves. The tests with real time are in package hub.
type hub struct {
	client     client.Client
	clock      *clocktesting.FakePassiveClock
	reconciler *lease.Reconciler
}

func newHub(change ...func(*clusterv1.ManagedCluster)) *hub {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	cluster.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue},
		{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start)},
	}
	for _, c := range change {
		c(cluster)
	}
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: names.ManagedClusterLease},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: start}},
	}
	h := &hub{
		client: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster, l).WithStatusSubresource(cluster).Build(),
		clock:  clocktesting.NewFakePassiveClock(start),
	}
	h.restart()
	return h
}

func (h *hub) restart() {
	h.reconciler = &lease.Reconciler{Client: h.client, Clock: h.clock, Recorder: event.Recorder{Events: events.NewFakeRecorder(100)}}
}

func (h *hub) wait(d time.Duration) { h.clock.SetTime(h.clock.Now().Add(d)) }

// look lets the controller look and returns when it wants to look again.
func (h *hub) look(t *testing.T) time.Duration {
	t.Helper()
	result, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

// renew renews the lease by a clock that is ahead of the hub's.
func (h *hub) renew(t *testing.T, ahead time.Duration) {
	t.Helper()
	l := &coordinationv1.Lease{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "c1", Name: names.ManagedClusterLease}, l); err != nil {
		t.Fatal(err)
	}
	l.Spec.RenewTime = &metav1.MicroTime{Time: h.clock.Now().Add(ahead)}
	if err := h.client.Update(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

func (h *hub) status(t *testing.T, kind string) metav1.ConditionStatus {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Name: "c1"}, cluster); err != nil {
		t.Fatal(err)
	}
	if c := apimeta.FindStatusCondition(cluster.Status.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}

func TestSilenceIsCountedFromWhatTheHubSaw(t *testing.T) {
	t.Parallel()
	h := newHub()
	h.wait(time.Hour) // Whatever the lease says: the hub has only just looked.
	if again := h.look(t); again != missed {
		t.Errorf("looks again after %v", again)
	}
	h.wait(grace - time.Second)
	if again := h.look(t); again != time.Second || h.status(t, clusterv1.ManagedClusterConditionAvailable) != metav1.ConditionTrue {
		t.Errorf("looks again after %v, available %s", again, h.status(t, clusterv1.ManagedClusterConditionAvailable))
	}
	h.wait(time.Second)
	if again := h.look(t); again != 0 || h.status(t, clusterv1.ManagedClusterConditionAvailable) != metav1.ConditionUnknown {
		t.Errorf("looks again after %v, available %s", again, h.status(t, clusterv1.ManagedClusterConditionAvailable))
	}
}

func TestAnySignOfLifeCounts(t *testing.T) {
	t.Parallel()
	h := newHub()
	h.look(t)
	h.wait(grace - time.Second)
	h.renew(t, -time.Hour) // The clock is wrong, the agent is alive.
	if again := h.look(t); again != missed {
		t.Errorf("after a renewal: looks again after %v", again)
	}
	h.wait(grace)
	h.look(t)
	if got := h.status(t, clusterv1.ManagedClusterConditionAvailable); got != metav1.ConditionUnknown {
		t.Fatalf("available %s", got)
	}
	cluster := &clusterv1.ManagedCluster{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Name: "c1"}, cluster); err != nil {
		t.Fatal(err)
	}
	apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(h.clock.Now()),
	})
	if err := h.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	// The agent's status may come before its lease: that must not be taken back.
	if again := h.look(t); again != missed || h.status(t, clusterv1.ManagedClusterConditionAvailable) != metav1.ConditionTrue {
		t.Errorf("looks again after %v, available %s", again, h.status(t, clusterv1.ManagedClusterConditionAvailable))
	}
}

func TestRestartRetainsConditions(t *testing.T) {
	t.Parallel()
	h := newHub()
	h.look(t)
	h.wait(grace)
	h.look(t)
	h.restart()
	h.look(t)
	if got := h.status(t, clusterv1.ManagedClusterConditionAvailable); got != metav1.ConditionUnknown {
		t.Errorf("available %s", got)
	}
}

// TestMissedRenewal: an agent is overdue from the renewal on that it missed until the next
// one, whoever looks in between.
func TestMissedRenewal(t *testing.T) {
	t.Parallel()
	h := newHub()
	want := func(when string, status metav1.ConditionStatus) {
		t.Helper()
		if got := h.status(t, names.ConditionLeaseOverdue); got != status {
			t.Errorf("%s: overdue %q, not %q", when, got, status)
		}
	}
	h.look(t)
	h.wait(time.Minute)
	h.renew(t, 0)
	h.look(t)
	h.wait(missed - time.Second)
	if again := h.look(t); again != time.Second {
		t.Errorf("looks again after %v", again)
	}
	want("in time", "")
	h.wait(time.Second)
	if again := h.look(t); again != grace-missed {
		t.Errorf("overdue, looks again after %v", again)
	}
	want("after a missed renewal", metav1.ConditionTrue)
	h.restart()
	h.look(t)
	h.wait(time.Second)
	h.look(t)
	want("after a restart of the hub", metav1.ConditionTrue)
	h.wait(grace)
	h.look(t)
	want("when the agent is lost", metav1.ConditionTrue)
	h.renew(t, 0)
	h.look(t)
	want("after a renewal", metav1.ConditionFalse)
}

func TestClocks(t *testing.T) {
	t.Parallel()
	synced := clusterv1.ManagedClusterConditionClockSynced
	for _, tc := range []struct {
		name  string
		ahead time.Duration
		want  metav1.ConditionStatus
	}{
		{"right", 0, metav1.ConditionTrue},
		{"a little ahead", grace - time.Second, metav1.ConditionTrue},
		{"too far ahead", grace, metav1.ConditionFalse},
		{"too far behind", -grace, metav1.ConditionFalse},
	} {
		h := newHub()
		h.look(t)
		h.wait(time.Minute)
		h.renew(t, tc.ahead)
		h.look(t)
		if got := h.status(t, synced); got != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
	h := newHub()
	h.wait(time.Hour)
	h.look(t)
	if got := h.status(t, synced); got != "" {
		t.Errorf("at the first look at an old lease: %s", got)
	}
	h = newHub(func(c *clusterv1.ManagedCluster) {
		c.Annotations = map[string]string{names.AnnotationSkipClockSync: "true"}
	})
	h.look(t)
	h.renew(t, time.Hour)
	h.look(t)
	if got := h.status(t, synced); got != metav1.ConditionTrue {
		t.Errorf("not to be judged: %s", got)
	}
}
