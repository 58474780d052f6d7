package manager

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	sdkv1alpha1 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/rollouts"
)

// The states of an add-on in a rollout. Those with a time began to be so that long ago.
type state struct {
	reason           string
	desired, applied string
	since            time.Duration
}

var (
	waiting = state{reason: addonv1beta1.ProgressingReasonCompleted, desired: "old", applied: "old"}
	begun   = state{reason: addonv1beta1.ProgressingReasonProgressing, desired: "new", applied: "old", since: time.Minute}
	broken  = state{reason: addonv1beta1.ProgressingReasonFailed, desired: "new", applied: "old", since: time.Minute}
	done    = state{reason: addonv1beta1.ProgressingReasonCompleted, desired: "new", applied: "new", since: time.Hour}
)

func (s state) of(cluster string) candidate {
	reference := func(desired, applied string) []addonv1beta1.ConfigReference {
		referent := addonv1beta1.ConfigReferent{Name: "t"}
		return []addonv1beta1.ConfigReference{{
			DesiredConfig:     &addonv1beta1.ConfigSpecHash{ConfigReferent: referent, SpecHash: desired},
			LastAppliedConfig: &addonv1beta1.ConfigSpecHash{ConfigReferent: referent, SpecHash: applied},
		}}
	}
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "a"}}
	addOn.Status.ConfigReferences = reference(s.desired, s.applied)
	addOn.Status.Conditions = []metav1.Condition{{
		Type: addonv1beta1.ManagedClusterAddOnConditionProgressing, Reason: s.reason,
		LastTransitionTime: metav1.NewTime(sdkv1alpha1.RolloutClock.Now().Add(-s.since)),
	}}
	return candidate{addOn: addOn, want: reference("new", "")}
}

func progressive(change func(*clusterv1alpha1.RolloutProgressive)) clusterv1alpha1.RolloutStrategy {
	p := &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(2)}
	if change != nil {
		change(p)
	}
	return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive, Progressive: p}
}

// decisions are of one cluster per state, in groups of size.
func decisions(states []state, size int) (list []clusterv1beta1.PlacementDecision, candidates map[string]candidate) {
	candidates = map[string]candidate{}
	for i, s := range states {
		cluster := fmt.Sprintf("c%d", i)
		candidates[cluster] = s.of(cluster)
		list = append(list, clusterv1beta1.PlacementDecision{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
				clusterv1beta1.DecisionGroupIndexLabel: strconv.Itoa(i / size), clusterv1beta1.DecisionGroupNameLabel: fmt.Sprintf("g%d", i/size),
			}},
			Status: clusterv1beta1.PlacementDecisionStatus{Decisions: []clusterv1beta1.ClusterDecision{{ClusterName: cluster}}},
		})
	}
	return list, candidates
}

func TestRollouts(t *testing.T) {
	t.Parallel()
	soaked := func(d time.Duration) func(*clusterv1alpha1.RolloutProgressive) {
		return func(p *clusterv1alpha1.RolloutProgressive) { p.MinSuccessTime = metav1.Duration{Duration: d} }
	}
	perGroup := clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.ProgressivePerGroup}
	for name, test := range map[string]struct {
		strategy clusterv1alpha1.RolloutStrategy
		states   []state
		want     []string
	}{
		"all at once":                             {clusterv1alpha1.RolloutStrategy{}, []state{waiting, waiting, waiting}, []string{"c0", "c1", "c2"}},
		"two at a time":                           {progressive(nil), []state{waiting, waiting, waiting}, []string{"c0", "c1"}},
		"those under way take a place":            {progressive(nil), []state{waiting, waiting, begun}, []string{"c0"}},
		"the next after those that are done":      {progressive(nil), []state{done, begun, waiting, waiting}, []string{"c2"}},
		"a share of the clusters":                 {progressive(func(p *clusterv1alpha1.RolloutProgressive) { p.MaxConcurrency = intstr.FromString("34%") }), []state{waiting, waiting, waiting}, []string{"c0", "c1"}},
		"success lasts for a while first":         {progressive(soaked(2 * time.Hour)), []state{done, done, waiting}, nil},
		"success has lasted":                      {progressive(soaked(time.Minute)), []state{done, done, waiting}, []string{"c2"}},
		"a failure ends it":                       {progressive(nil), []state{done, broken, waiting, waiting}, nil},
		"a failure is tolerated":                  {progressive(func(p *clusterv1alpha1.RolloutProgressive) { p.MaxFailures = intstr.FromInt32(1) }), []state{broken, waiting, waiting}, []string{"c1"}},
		"what takes too long is a failure":        {progressive(func(p *clusterv1alpha1.RolloutProgressive) { p.ProgressDeadline = "30s" }), []state{begun, waiting, waiting}, nil},
		"mandatory groups go first":               {progressive(mandatory("g1")), []state{waiting, waiting, waiting, waiting}, []string{"c2", "c3"}},
		"mandatory groups tolerate no failure":    {progressive(mandatory("g1")), []state{waiting, waiting, done, broken}, nil},
		"the others after the mandatory groups":   {progressive(mandatory("g1")), []state{waiting, waiting, done, done}, []string{"c0", "c1"}},
		"group by group":                          {perGroup, []state{waiting, waiting, waiting}, []string{"c0", "c1"}},
		"the next group after one that is done":   {perGroup, []state{done, done, waiting}, []string{"c2"}},
		"no next group before all of one is done": {perGroup, []state{done, begun, waiting}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, candidates := decisions(test.states, 2)
			r, err := evaluate(test.strategy, rollouts.Groups(list), candidates)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, addOn := range r.release {
				got = append(got, addOn.Namespace)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("released (-want +got):\n%s", diff)
			}
		})
	}
}

func mandatory(group string) func(*clusterv1alpha1.RolloutProgressive) {
	return func(p *clusterv1alpha1.RolloutProgressive) {
		p.MandatoryDecisionGroups.MandatoryDecisionGroups = []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: group}}
	}
}

// TestRolloutIsLookedAtAgain: what only the time changes has a time.
func TestRolloutIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	list, candidates := decisions([]state{done, waiting}, 2)
	r, err := evaluate(progressive(func(p *clusterv1alpha1.RolloutProgressive) {
		p.MaxConcurrency, p.MinSuccessTime = intstr.FromInt32(1), metav1.Duration{Duration: 2 * time.Hour}
	}), rollouts.Groups(list), candidates)
	if err != nil || len(r.release) > 0 || r.Recheck <= 0 || r.Recheck > time.Hour {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestInvalidRollout(t *testing.T) {
	t.Parallel()
	list, candidates := decisions([]state{waiting}, 1)
	r, err := evaluate(progressive(func(p *clusterv1alpha1.RolloutProgressive) { p.MaxFailures = intstr.FromString("many") }), rollouts.Groups(list), candidates)
	if err == nil || len(r.release) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	var progression addonv1beta1.InstallProgression
	reportInvalid(&progression, errors.New("x"), time.Unix(0, 0))
	if len(progression.Conditions) != 1 {
		t.Error("not reported")
	}
	reportInvalid(&progression, nil, time.Unix(0, 0))
	if len(progression.Conditions) != 0 {
		t.Error("still reported")
	}
}

// TestGroupsHaveNoGaps: a group without decisions is a group.
func TestGroupsHaveNoGaps(t *testing.T) {
	t.Parallel()
	list, candidates := decisions([]state{waiting, waiting, waiting}, 1)
	list = slices.Delete(list, 1, 2)
	delete(candidates, "c1")
	r, err := evaluate(clusterv1alpha1.RolloutStrategy{}, rollouts.Groups(list), candidates)
	if err != nil || len(r.release) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}
