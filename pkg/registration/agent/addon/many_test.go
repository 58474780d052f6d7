package addon_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/clocks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// TestMany registers many add-ons at once and counts what that takes.
func TestMany(t *testing.T) {
	t.Parallel()
	const many = 40
	f := newFleet(t, driver.Token)
	p := f.start(t)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			name := fmt.Sprintf("addon%d", i)
			f.register(t, name)
			f.subject(t, name, driver.Token)
			f.serve(t, name, names.AddOnServiceAccount(f.cluster, name))
		})
	}
	all.Wait()
	for i := range many {
		name := fmt.Sprintf("addon%d", i)
		f.condition(t, name, names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
		if f.secret(t, names.AddOnHubKubeconfigSecret(name)) == nil {
			t.Errorf("%s has no Secret", name)
		}
	}
	f.settled(t)
	writes := f.writes()
	t.Log(writes)
	if writes["POST serviceaccounts/token"] != many || writes["POST secrets"] != many || len(writes) != 3 {
		t.Errorf("the agent wrote %v for %d add-ons", writes, many)
	}
	if n := p.series(t, "ocm_addon_credential_expiry_seconds"); n != many {
		t.Errorf("%d series", n)
	}

	// Another agent finds everything as it should be.
	p.stop()
	f.start(t)
	f.settled(t)
	if writes := f.writes(); len(writes) > 0 {
		t.Errorf("after a restart the agent wrote %v", writes)
	}
}

// TestLease tells the availability of an add-on by its lease.
func TestLease(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	c := clocks.NewMoved(t)
	f.config.Clock = c
	f.start(t)
	f.register(t, "one")
	const available = addonv1beta1.ManagedClusterAddOnConditionAvailable
	unknown := f.condition(t, "one", available, metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound")
	if unknown.Message != "The status of one add-on is unknown." {
		t.Errorf("message %q", unknown.Message)
	}
	renewed := func(at time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.installed(), Name: "one"},
			Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(60)), RenewTime: new(metav1.NewMicroTime(at))},
		}
	}
	lease := renewed(c.Now().Add(-5 * time.Minute))
	create(t, f.admin, lease)
	if stopped := f.condition(t, "one", available, metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped"); stopped.Message != "one add-on is not available." {
		t.Errorf("message %q", stopped.Message)
	}
	// It is renewed, and with time alone it has not been for too long.
	lease.Spec = renewed(c.Now()).Spec
	if err := f.admin.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if updated := f.condition(t, "one", available, metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated"); updated.Message != "one add-on is available." {
		t.Errorf("message %q", updated.Message)
	}
	f.settled(t)
	c.Step(6 * time.Minute)
	f.condition(t, "one", available, metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped")
	f.writes()
	lease.Spec = renewed(c.Now()).Spec
	if err := f.admin.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	f.condition(t, "one", available, metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated")
	f.settled(t)
	f.writes()
	lease.Spec = renewed(c.Now()).Spec
	if err := f.admin.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	f.settled(t)
	if writes := f.writes(); len(writes) > 0 {
		t.Errorf("for a renewal in time the agent wrote %v", writes)
	}
	// A time that moves back, as with a clock that was set, counts at once.
	lease.Spec = renewed(c.Now().Add(-10 * time.Minute)).Spec
	if err := f.admin.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	f.condition(t, "one", available, metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped")
	lease.Spec = renewed(c.Now()).Spec
	if err := f.admin.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	f.condition(t, "one", available, metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated")
	// An add-on that judges its own health is left alone.
	f.status(t, "one", func(s *addonStatus) {
		s.HealthCheck.Mode = addonv1beta1.HealthCheckModeCustomized
		for i := range s.Conditions {
			if s.Conditions[i].Type == available {
				s.Conditions[i].Reason, s.Conditions[i].Status = "ProbeUnavailable", metav1.ConditionFalse
			}
		}
	})
	if err := f.admin.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	f.settled(t)
	f.condition(t, "one", available, metav1.ConditionFalse, "ProbeUnavailable")
}

// TestOutOfReach takes the hub away while a token is to be renewed.
func TestOutOfReach(t *testing.T) {
	t.Parallel()
	f := newFleet(t, driver.Token)
	f.start(t)
	old := f.withToken(t)
	var failed atomic.Int32
	f.setFail(func(path string) bool {
		if !strings.Contains(path, "/managedclusteraddons/") && !strings.HasSuffix(path, "/token") {
			return false
		}
		failed.Add(1)
		return true
	})
	if err := f.admin.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	eventually(t, "requests that fail", func() error {
		if n := failed.Load(); n < 3 {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	})
	f.setFail(nil)
	f.awaitSecret(t, old.Name, func(data map[string][]byte) bool { return string(data["token"]) != string(old.Data["token"]) })
}

// TestRestartedServers kills the API server of hub and managed cluster while a
// token that is good for minutes is to be renewed.
func TestRestartedServers(t *testing.T) {
	t.Parallel()
	own := controlplane.Start(t)
	f := newFleetOn(t, own.ControlPlane, driver.Token)
	f.start(t)
	good := f.withToken(t)
	for range 2 {
		secret := f.secret(t, good.Name)
		f.age(t, secret, 0.81)
		old := secret.Data["token"]
		if err := f.admin.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		own.StopAPIServer(t)
		own.StartAPIServer(t)
		f.awaitSecret(t, good.Name, func(data map[string][]byte) bool { return string(data["token"]) != string(old) })
		f.condition(t, "one", names.ConditionTokenRefreshed, metav1.ConditionTrue, names.ReasonAddOnTokenRefreshed)
	}
}
