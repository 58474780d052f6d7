package replicaset

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	sdkv1alpha1 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
	sdkv1beta1 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/rollouts"
)

// state is the observed state of a set.
type state struct {
	placements []placement
	// works are those of the clusters that are chosen, by cluster. They are those of the
	// cache, and not to be changed.
	works map[string]*workv1.ManifestWork
	// surplus are works that are not to be.
	surplus []*workv1.ManifestWork
	// leaving are clusters that are being deleted: what they have is removed with them, in
	// its order.
	leaving sets.Set[string]
	// occupied are the clusters with a ManifestWork of that name that is not the set's.
	occupied sets.Set[string]
	// problems are the reasons why the set cannot be rolled out, as sentences.
	problems []string
}

// placement is the state of one placement of a set.
type placement struct {
	ref workv1alpha1.LocalPlacementReference
	// decided says that there are decisions for it.
	decided bool
	// groups are the clusters that no placement before it chose.
	groups sdkv1beta1.ClusterGroupsMap
	// invalid is the error of its rollout strategy.
	invalid error
	rollout rollouts.Result
}

// recheck is when the set is to be looked at again without an event; 0 is never.
func (s *state) recheck() time.Duration {
	var soonest time.Duration
	if len(s.occupied) > 0 {
		soonest = recheck
	}
	for _, p := range s.placements {
		if p.rollout.Recheck > 0 && (soonest == 0 || p.rollout.Recheck < soonest) {
			soonest = p.rollout.Recheck
		}
	}
	return soonest
}

// survey finds out which clusters are chosen and how far their works are.
func (r *reconciler) survey(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) (state, error) {
	s := state{works: map[string]*workv1.ManifestWork{}, occupied: sets.New[string]()}
	var err error
	if s.leaving, err = r.leaving(ctx); err != nil {
		return s, err
	}
	chosen, undecided := map[string]string{}, sets.New[string]()
	for _, ref := range set.Spec.PlacementRefs {
		var decisions clusterv1beta1.PlacementDecisionList
		if err := r.client.List(ctx, &decisions, client.UnsafeDisableDeepCopy, client.InNamespace(set.Namespace),
			client.MatchingLabels{clusterv1beta1.PlacementLabel: ref.Name}); err != nil {
			return s, fmt.Errorf("list PlacementDecisions: %w", err)
		}
		p := placement{ref: ref, decided: len(decisions.Items) > 0, groups: rollouts.Groups(decisions.Items)}
		if !p.decided {
			undecided.Insert(ref.Name)
		}
		rollouts.Restrict(p.groups, func(cluster string) bool { return chosen[cluster] == "" && !s.leaving.Has(cluster) })
		for cluster := range p.groups.GetClusters() {
			chosen[cluster] = ref.Name
		}
		s.placements = append(s.placements, p)
	}
	if err := r.sort(ctx, set, &s, chosen, undecided); err != nil {
		return s, err
	}
	for i := range s.placements {
		if err := r.evaluate(ctx, set, &s, &s.placements[i]); err != nil {
			return s, err
		}
	}
	return s, nil
}

// leaving returns the clusters that are being deleted.
func (r *reconciler) leaving(ctx context.Context) (sets.Set[string], error) {
	var list clusterv1.ManagedClusterList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ManagedClusters: %w", err)
	}
	found := sets.New[string]()
	for i := range list.Items {
		if !list.Items[i].DeletionTimestamp.IsZero() {
			found.Insert(list.Items[i].Name)
		}
	}
	return found, nil
}

// sort separates the works of a set that are to be from those that are not.
func (r *reconciler) sort(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, s *state, chosen map[string]string, undecided sets.Set[string]) error {
	var list workv1.ManifestWorkList
	if err := r.client.List(ctx, &list, ofSet(set), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ManifestWorks: %w", err)
	}
	for i := range list.Items {
		work := &list.Items[i]
		by, kept := chosen[work.Namespace], s.works[work.Namespace]
		switch {
		case s.leaving.Has(work.Namespace):
		case by == "" && undecided.Has(work.Labels[workv1alpha1.ManifestWorkReplicaSetPlacementNameLabelKey]):
			// No decision is against it.
		case by == "":
			s.surplus = append(s.surplus, work)
		case kept == nil:
			s.works[work.Namespace] = work
		case work.Labels[workv1alpha1.ManifestWorkReplicaSetPlacementNameLabelKey] == by:
			// OCM makes a work for each placement that chooses a cluster.
			s.surplus = append(s.surplus, kept)
			s.works[work.Namespace] = work
		default:
			s.surplus = append(s.surplus, work)
		}
	}
	return nil
}

// evaluate determines the clusters that are next in the rollout of a placement.
func (r *reconciler) evaluate(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, s *state, p *placement) error {
	var statuses []sdkv1alpha1.ClusterRolloutStatus
	for cluster := range p.groups.GetClusters() {
		work := s.works[cluster]
		if work == nil {
			occupied, err := r.occupied(ctx, client.ObjectKey{Namespace: cluster, Name: set.Name})
			if err != nil {
				return err
			}
			if occupied {
				s.occupied.Insert(cluster)
				// It has failed, and takes no place in a step.
				statuses = append(statuses, sdkv1alpha1.ClusterRolloutStatus{ClusterName: cluster, Status: sdkv1alpha1.TimeOut})
				continue
			}
		}
		statuses = append(statuses, progress(set, p.ref.Name, cluster, work))
	}
	strategy, err := rollouts.Concurrency(ctx, r.client, client.ObjectKey{Namespace: set.Namespace, Name: p.ref.Name}, p.ref.RolloutStrategy)
	if err != nil {
		return fmt.Errorf("placement %s: %w", p.ref.Name, err)
	}
	p.rollout, p.invalid = rollouts.Evaluate(strategy, p.groups, statuses)
	return nil
}

// occupied reports whether there is a ManifestWork that belongs to no set or another one.
func (r *reconciler) occupied(ctx context.Context, name client.ObjectKey) (bool, error) {
	err := r.client.Get(ctx, name, &workv1.ManifestWork{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("ManifestWork %s: %w", name, err)
	}
	return err == nil, nil
}

// progress is how far the work of a cluster has come, nil being none. A work whose agent
// has not applied its last change counts as progressing, for as long as that takes.
func progress(set *workv1alpha1.ManifestWorkReplicaSet, placement, cluster string, work *workv1.ManifestWork) sdkv1alpha1.ClusterRolloutStatus {
	status := sdkv1alpha1.ClusterRolloutStatus{ClusterName: cluster, Status: sdkv1alpha1.Progressing}
	switch {
	case work == nil || work.DeletionTimestamp.IsZero() && !current(set, placement, work):
		status.Status = sdkv1alpha1.ToApply
	case work.DeletionTimestamp.IsZero() && isTrue(observed(work, workv1.WorkApplied)):
		status.Status, status.LastTransitionTime = outcome(work)
	}
	return status
}

// outcome is how far a work is that its agent has applied, and since when. Without
// condition rules about its progress, one that is available has succeeded.
func outcome(work *workv1.ManifestWork) (sdkv1alpha1.RolloutStatus, *metav1.Time) {
	decisive, success := observed(work, workv1.WorkProgressing), metav1.ConditionFalse
	if decisive == nil {
		decisive, success = observed(work, workv1.WorkAvailable), metav1.ConditionTrue
	}
	degraded := apimeta.FindStatusCondition(work.Status.Conditions, workv1.WorkDegraded)
	if decisive == nil || degraded != nil && degraded.ObservedGeneration != work.Generation {
		return sdkv1alpha1.Progressing, nil
	}
	unfinished := decisive.Type == workv1.WorkAvailable || decisive.Status == metav1.ConditionTrue
	switch {
	case unfinished && isTrue(degraded):
		return sdkv1alpha1.Failed, &degraded.LastTransitionTime
	case decisive.Status == success:
		return sdkv1alpha1.Succeeded, &decisive.LastTransitionTime
	}
	return sdkv1alpha1.Progressing, &decisive.LastTransitionTime
}

func isTrue(condition *metav1.Condition) bool {
	return condition != nil && condition.Status == metav1.ConditionTrue
}

// observed is a condition of a work that is about its last change.
func observed(work *workv1.ManifestWork, kind string) *metav1.Condition {
	condition := apimeta.FindStatusCondition(work.Status.Conditions, kind)
	if condition == nil || condition.ObservedGeneration != work.Generation {
		return nil
	}
	return condition
}

// current reports whether a work is as its set wants it. Labels that others added stay.
func current(set *workv1alpha1.ManifestWorkReplicaSet, placement string, work *workv1.ManifestWork) bool {
	for name, value := range labels(set, placement) {
		if got, ok := work.Labels[name]; !ok || got != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(set.Spec.ManifestWorkTemplate, work.Spec)
}
