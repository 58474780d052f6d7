package addon_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/blindfold"
)

// oneByOne is an add-on with a configuration that clusters get one after the other, each
// after the one before had it for soak.
func oneByOne(soak time.Duration) *addonv1beta1.ClusterManagementAddOn {
	return fleet("a1", placed("p1"), func(cma *addonv1beta1.ClusterManagementAddOn) {
		cma.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{addOnConfig(deploymentConfigs, "d1")}
		cma.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.Progressive,
			Progressive: &clusterv1alpha1.RolloutProgressive{
				RolloutConfig: clusterv1alpha1.RolloutConfig{MinSuccessTime: metav1.Duration{Duration: soak}}, MaxConcurrency: intstr.FromInt32(1),
			},
		}
	})
}

// reconfigure changes the configuration of oneByOne and returns its hash.
func (e *env) reconfigure(t *testing.T, variable string) map[string]string {
	t.Helper()
	e.merge(t, deploymentConfig("d1", ""), `{"spec":{"customizedVariables":[{"name":"X","value":"`+variable+`"}]}}`)
	return map[string]string{"addondeploymentconfigs/d1": e.hash(t, "d1")}
}

// awaitTurn waits until an add-on waits for its turn in a rollout.
func (e *env) awaitTurn(t *testing.T, cluster string) {
	t.Helper()
	e.awaitCondition(t, cluster, "a1", addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, addonv1beta1.ProgressingReasonWaitingForCanary)
}

// TestRolloutKeepsTheOrder: a rollout in steps does not go on with a later cluster while
// the cache lacks the add-on of an earlier one.
func TestRolloutKeepsTheOrder(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, cluster := range []string{"c1", "c2", "c3"} {
		e.cluster(t, cluster)
	}
	e.create(t, deploymentConfig("d1", "1"))
	e.decide(t, "p1", "c1", "c3")
	stop := e.start(t, nil)
	e.create(t, oneByOne(0))
	e.awaitHashes(t, "c1", "a1", map[string]string{"addondeploymentconfigs/d1": e.hash(t, "d1")})
	e.awaitTurn(t, "c3")
	stop()

	e.decide(t, "p1", "c2", "c3")
	blind := blindfold.New(func(watch *http.Request) bool { return strings.HasSuffix(watch.URL.Path, "/managedclusteraddons") })
	e.start(t, blind.Wrap)
	e.awaitInstalled(t, "a1", "c2", "c3")
	// When the fleet has this, the reconciliation that made the add-on is over.
	want := e.reconfigure(t, "2")
	eventually(t, "the fleet has the new configuration", func(ctx context.Context) (bool, error) {
		cma := fleet("a1")
		e.get(ctx, t, cma)
		got := cma.Status.DefaultConfigReferences
		return len(got) == 1 && got[0].DesiredConfig.SpecHash == want["addondeploymentconfigs/d1"], nil
	})
	later := addOn("c3", "a1")
	e.get(t.Context(), t, later)
	if got := later.Status.ConfigReferences; len(got) > 0 {
		t.Errorf("c3 has %+v before c2", got)
	}
	blind.Lift()
	e.awaitHashes(t, "c2", "a1", want)
	e.awaitTurn(t, "c3")
}

// TestSoakStartsAgain: that a cluster had other configurations for long enough does not count.
func TestSoakStartsAgain(t *testing.T) {
	t.Parallel()
	const soak = time.Hour
	e := newEnv(t)
	e.create(t, deploymentConfig("d1", "1"))
	e.decide(t, "p1", "c1", "c2")
	e.start(t, nil)
	e.create(t, oneByOne(soak))
	completed := func(cluster string) *metav1.Condition {
		t.Helper()
		return e.awaitCondition(t, cluster, "a1", addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted)
	}
	for _, cluster := range []string{"c1", "c2"} {
		e.cluster(t, cluster)
		e.awaitHashes(t, cluster, "a1", map[string]string{"addondeploymentconfigs/d1": e.hash(t, "d1")})
		e.setCondition(t, cluster, "a1", addonv1beta1.ManagedClusterAddOnManifestApplied, "True")
		completed(cluster)
		e.age(t, cluster, 2*soak)
	}
	want := e.reconfigure(t, "2")
	e.awaitHashes(t, "c1", "a1", want)
	if since := completed("c1").LastTransitionTime; (clock.RealClock{}).Since(since.Time) >= soak {
		t.Errorf("c1 is said to have the configuration since %v", since)
	}
	e.awaitProgression(t, "a1", addonv1beta1.ProgressingReasonProgressing, "1 of 2 clusters")
	e.awaitTurn(t, "c2")
}

// age has the condition Progressing of an add-on be older.
func (e *env) age(t *testing.T, cluster string, by time.Duration) {
	t.Helper()
	e.awaitAddOn(t, cluster, "a1", "is older", func(a *addonv1beta1.ManagedClusterAddOn) bool {
		c := apimeta.FindStatusCondition(a.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
		c.LastTransitionTime = metav1.NewTime(c.LastTransitionTime.Add(-by))
		return e.admin.Status().Update(t.Context(), a) == nil
	})
}

// TestStaleConditions: a condition is not set over what was written since the add-on was
// read, because its time is that of the condition that was there then.
func TestStaleConditions(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.cluster(t, "c1")
	e.create(t, addOn("c1", "a1"))
	e.setCondition(t, "c1", "a1", "A", "False")
	read, manager := addOn("c1", "a1"), e.cp.ClientFor(t, e.connection(t, nil))
	e.get(t.Context(), t, read)
	set := func(addOn *addonv1beta1.ManagedClusterAddOn, status metav1.ConditionStatus, message string) error {
		_, err := addonpatch.SetConditions(t.Context(), manager, "ocm.test", addOn, clock.RealClock{}.Now(),
			metav1.Condition{Type: "A", Status: status, Reason: "R", Message: message})
		return err
	}
	if err := set(read, metav1.ConditionTrue, "later"); err != nil {
		t.Fatal(err)
	}
	if err := set(read, metav1.ConditionFalse, "stale"); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	e.get(t.Context(), t, read)
	if c := apimeta.FindStatusCondition(read.Status.Conditions, "A"); c.Status != metav1.ConditionTrue || c.Message != "later" {
		t.Errorf("%+v", c)
	}
}
