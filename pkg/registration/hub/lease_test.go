package hub_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// patchAvailable says what an agent says about its API server. Conditions that the
// hub sets at the same time stay.
func (e *env) patchAvailable(t *testing.T, name string, status metav1.ConditionStatus) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cluster := e.get(t.Context(), t, name)
		patch := client.MergeFromWithOptions(cluster.DeepCopy(), client.MergeFromWithOptimisticLock{})
		apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
			Type: clusterv1.ManagedClusterConditionAvailable, Status: status, Reason: "Test", Message: "said by a test",
		})
		return e.admin.Status().Patch(t.Context(), cluster, patch)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// renew renews a lease as the cluster's agent, with the time of its clock.
func (e *env) renew(t *testing.T, agent client.Client, name string, now time.Time) {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := agent.Get(t.Context(), client.ObjectKey{Namespace: name, Name: names.ManagedClusterLease}, lease); err != nil {
		t.Fatal(err)
	}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	if err := agent.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

func leaseSeconds(seconds int32) func(*clusterv1.ManagedCluster) {
	return func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = seconds }
}

// taintKeys waits until the cluster has exactly the taints of these keys.
func (e *env) awaitTaints(t *testing.T, name string, want ...string) {
	t.Helper()
	e.awaitCluster(t, name, "tainted "+strings.Join(want, ", "), func(c *clusterv1.ManagedCluster) bool {
		var got []string
		for _, taint := range c.Spec.Taints {
			got = append(got, taint.Key)
		}
		return slices.Equal(got, want)
	})
}

func TestLeases(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	writes := newWrites()
	e.start(t, defaults(), writes.Wrap)

	t.Run("renewing costs the hub no write", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "steady", acceptedFromTheStart)
		e.awaitAccepted(t, "steady")
		e.patchAvailable(t, "steady", metav1.ConditionTrue)
		agent := e.agent(t, "steady")
		e.renew(t, agent, "steady", clock.RealClock{}.Now())
		e.awaitCondition(t, "steady", clusterv1.ManagedClusterConditionClockSynced, metav1.ConditionTrue, names.ReasonClockSynced)
		e.awaitTaints(t, "steady")
		before := len(besidesRights(writes.About("steady")))
		for range 20 {
			e.renew(t, agent, "steady", clock.RealClock{}.Now())
		}
		e.cluster(t, "marker", acceptedFromTheStart)
		e.awaitAccepted(t, "marker")
		if got := besidesRights(writes.About("steady")); len(got) != before {
			t.Errorf("%d more writes: %v", len(got)-before, got[before:])
		}
		if len(e.get(t.Context(), t, "steady").Spec.Taints) > 0 {
			t.Error("a healthy cluster is tainted")
		}
	})
	t.Run("an agent that stops is noticed and one that comes back is believed", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "silent", acceptedFromTheStart, leaseSeconds(1))
		e.awaitAccepted(t, "silent")
		e.patchAvailable(t, "silent", metav1.ConditionTrue)
		e.addOn(t, "silent")
		e.awaitFeature(t, "silent", "a1", names.FeatureUnreachable)
		e.awaitCondition(t, "silent", names.ConditionLeaseOverdue, metav1.ConditionTrue, names.ReasonLeaseNotRenewed)
		cluster := e.awaitCondition(t, "silent", clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown, names.ReasonLeaseUpdateStopped)
		condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
		if condition.Message != names.MessageLeaseUpdateStopped {
			t.Errorf("message %q", condition.Message)
		}
		e.awaitTaints(t, "silent", clusterv1.ManagedClusterTaintUnreachable)
		e.describes(t, "silent", "AvailableUnknown", names.MessageLeaseUpdateStopped)
		// It is not silent again before the test has seen that it was believed.
		err := e.admin.Patch(t.Context(), e.named("silent"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"leaseDurationSeconds":3600}}`)))
		if err != nil {
			t.Fatal(err)
		}
		e.renew(t, e.agent(t, "silent"), "silent", clock.RealClock{}.Now())
		e.awaitCondition(t, "silent", names.ConditionLeaseOverdue, metav1.ConditionFalse, names.ReasonLeaseRenewed)
		e.patchAvailable(t, "silent", metav1.ConditionTrue)
		e.awaitTaints(t, "silent")
		e.patchAvailable(t, "silent", metav1.ConditionFalse)
		e.awaitTaints(t, "silent", clusterv1.ManagedClusterTaintUnavailable)
	})
	t.Run("a skewed clock is named and makes nothing unknown", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "skewed", acceptedFromTheStart)
		e.awaitAccepted(t, "skewed")
		e.patchAvailable(t, "skewed", metav1.ConditionTrue)
		agent := e.agent(t, "skewed")
		for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
			var condition *metav1.Condition
			cluster := e.awaitCluster(t, "skewed", "out of sync", func(c *clusterv1.ManagedCluster) bool {
				// The first look at a lease, which may be at this renewal, tells nothing of a clock.
				e.renew(t, agent, "skewed", clock.RealClock{}.Now().Add(ahead))
				condition = apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced)
				return condition != nil && condition.Status == metav1.ConditionFalse && condition.Reason == names.ReasonClockOutOfSync
			})
			if !strings.Contains(condition.Message, "1h0m") && !strings.Contains(condition.Message, "59m") {
				t.Errorf("message %q", condition.Message)
			}
			if !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
				t.Error("the cluster is called unavailable because of its clock")
			}
			e.renew(t, agent, "skewed", clock.RealClock{}.Now())
			e.awaitCondition(t, "skewed", clusterv1.ManagedClusterConditionClockSynced, metav1.ConditionTrue, names.ReasonClockSynced)
		}
	})
	t.Run("a cluster that never comes is tainted after a while", func(t *testing.T) {
		t.Parallel()
		e.cluster(t, "late", leaseSeconds(1))
		e.awaitTaints(t, "late", clusterv1.ManagedClusterTaintUnreachable)
		if e.get(t.Context(), t, "late").Status.Conditions != nil {
			t.Error("nobody accepted it, and it has conditions")
		}
	})
}

func (e *env) awaitFeature(t *testing.T, cluster, addOn, want string) {
	t.Helper()
	e.awaitCluster(t, cluster, "labelled "+addOn+"="+want, func(c *clusterv1.ManagedCluster) bool {
		return c.Labels[names.LabelFeatureAddOnPrefix+addOn] == want
	})
}

// TestFeatures follows the state of add-ons.
func TestFeatures(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start(t, defaults(), nil)
	e.cluster(t, "c1", acceptedFromTheStart)
	e.awaitAccepted(t, "c1")
	e.addOn(t, "c1")
	e.awaitFeature(t, "c1", "a1", names.FeatureUnreachable)
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a1"}}
	report := func(status metav1.ConditionStatus) {
		t.Helper()
		if err := e.admin.Get(t.Context(), client.ObjectKeyFromObject(addOn), addOn); err != nil {
			t.Fatal(err)
		}
		apimeta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{
			Type: addonv1beta1.ManagedClusterAddOnConditionAvailable, Status: status, Reason: "Test", Message: "said by its agent",
		})
		if err := e.admin.Status().Update(t.Context(), addOn); err != nil {
			t.Fatal(err)
		}
	}
	report(metav1.ConditionTrue)
	e.awaitFeature(t, "c1", "a1", names.FeatureAvailable)
	report(metav1.ConditionFalse)
	e.awaitFeature(t, "c1", "a1", names.FeatureUnhealthy)
	report(metav1.ConditionTrue)
	e.awaitFeature(t, "c1", "a1", names.FeatureAvailable)

	e.patchAvailable(t, "c1", metav1.ConditionUnknown)
	e.awaitFeature(t, "c1", "a1", names.FeatureUnreachable)
	eventually(t, "the add-on is unknown", func(ctx context.Context) (bool, error) {
		err := e.admin.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)
		return apimeta.IsStatusConditionPresentAndEqual(addOn.Status.Conditions,
			addonv1beta1.ManagedClusterAddOnConditionAvailable, metav1.ConditionUnknown), err
	})
	// That it was unknown before, for a reason of its own, is no longer why.
	report(metav1.ConditionUnknown)
	eventually(t, "the add-on is unknown because its cluster is", func(ctx context.Context) (bool, error) {
		err := e.admin.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)
		condition := apimeta.FindStatusCondition(addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
		return condition != nil && condition.Message == "said by a test", err
	})
	if err := e.admin.Delete(t.Context(), addOn); err != nil {
		t.Fatal(err)
	}
	e.awaitFeature(t, "c1", "a1", "")
	// What somebody else writes under the prefix is corrected.
	e.patch(t, "c1", `{"metadata":{"labels":{"`+names.LabelFeatureAddOnPrefix+`ghost":"available"}}}`)
	e.awaitFeature(t, "c1", "ghost", "")
}
