package lease_test

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/lease"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type fixture struct {
	clock      *testingclock.FakePassiveClock
	hub        client.Client
	updates    int
	outcomes   []error
	reconciler *lease.Reconciler
}

// newFixture is an accepted cluster whose lease was renewed age ago.
func newFixture(t *testing.T, age time.Duration) *fixture {
	t.Helper()
	f := &fixture{clock: testingclock.NewFakePassiveClock(start)}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{LeaseDurationSeconds: 60}}
	apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue, Reason: names.ReasonHubAccepted})
	beat := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: names.ManagedClusterLease, Labels: map[string]string{"x": "y"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("holder"), RenewTime: new(metav1.NewMicroTime(start.Add(-age)))},
	}
	f.hub = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster, beat).WithStatusSubresource(cluster).
		WithInterceptorFuncs(interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				f.updates++
				return c.Update(ctx, o, opts...)
			},
		}).Build()
	f.restart()
	return f
}

func (f *fixture) restart() {
	f.reconciler = &lease.Reconciler{Client: f.hub, Clock: f.clock, Observe: func(err error) { f.outcomes = append(f.outcomes, err) }}
}

func (f *fixture) reconcile(t *testing.T) time.Duration {
	t.Helper()
	result, err := f.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func (f *fixture) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	var l coordinationv1.Lease
	if err := f.hub.Get(t.Context(), client.ObjectKey{Namespace: "c1", Name: names.ManagedClusterLease}, &l); err != nil {
		t.Fatal(err)
	}
	return &l
}

func TestAFreshLeaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 10*time.Second)
	wait := f.reconcile(t)
	if f.updates != 0 || wait < 50*time.Second || wait > 65*time.Second {
		t.Errorf("%d updates, again after %v", f.updates, wait)
	}
	f.clock.SetTime(start.Add(time.Second)) // Something woke it early.
	if again := f.reconcile(t); f.updates != 0 || again != wait-time.Second {
		t.Errorf("%d updates, again after %v", f.updates, again)
	}
}

func TestAnOldLeaseIsRenewedAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2*time.Minute)
	wait := f.reconcile(t)
	got := f.lease(t)
	if f.updates != 1 || !got.Spec.RenewTime.Equal(&metav1.MicroTime{Time: start}) || wait < time.Minute || wait > 75*time.Second {
		t.Errorf("%d updates, renewed %v, again after %v", f.updates, got.Spec.RenewTime, wait)
	}
	if *got.Spec.HolderIdentity != "holder" || got.Labels["x"] != "y" {
		t.Errorf("more than renewTime changed: %+v", got)
	}
	if len(f.outcomes) != 1 || f.outcomes[0] != nil {
		t.Errorf("outcomes %v", f.outcomes)
	}
}

// TestNoGap runs an hour, with restarts, and looks that the lease is never
// older than one and a quarter of its duration.
func TestNoGap(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	for i := 0; f.clock.Now().Before(start.Add(time.Hour)); i++ {
		wait := f.reconcile(t)
		if wait <= 0 {
			t.Fatal("it does not come back")
		}
		f.clock.SetTime(f.clock.Now().Add(wait))
		if age := f.clock.Now().Sub(f.lease(t).Spec.RenewTime.Time); age > 75*time.Second {
			t.Fatalf("the lease is %v old", age)
		}
		if i%7 == 0 {
			f.restart()
		}
	}
	if f.updates < 48 || f.updates > 61 {
		t.Errorf("%d updates in an hour", f.updates)
	}
}

func TestNotAccepted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 10*time.Minute)
	var cluster clusterv1.ManagedCluster
	if err := f.hub.Get(t.Context(), client.ObjectKey{Name: "c1"}, &cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Status.Conditions[0].Status = metav1.ConditionFalse
	if err := f.hub.Status().Update(t.Context(), &cluster); err != nil {
		t.Fatal(err)
	}
	if wait := f.reconcile(t); f.updates != 0 || wait != 0 {
		t.Errorf("%d updates, again after %v", f.updates, wait)
	}
}
