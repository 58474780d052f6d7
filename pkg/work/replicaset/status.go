package replicaset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
)

// maxProblems is how many problems a condition lists.
const maxProblems = 3

// report writes into the status of a set what there is of it.
func report(set *workv1alpha1.ManifestWorkReplicaSet, s *state) {
	set.Status.Summary, set.Status.PlacementsSummary = workv1alpha1.ManifestWorkReplicaSetSummary{}, []workv1alpha1.PlacementSummary{}
	for i := range s.placements {
		summary := s.summarize(set, &s.placements[i])
		set.Status.PlacementsSummary = append(set.Status.PlacementsSummary, summary)
		add(&set.Status.Summary, summary.Summary)
	}
	conditions(set, s)
}

// conditions sets the conditions of a set.
func conditions(set *workv1alpha1.ManifestWorkReplicaSet, s *state) {
	verified := s.verified(set.Status.Summary)
	for _, condition := range []metav1.Condition{verified, s.rolledOut(), s.applied(set.Status.Summary, verified.Reason)} {
		condition.ObservedGeneration = set.Generation
		apimeta.SetStatusCondition(&set.Status.Conditions, condition)
	}
}

// summarize counts the works of a placement.
func (s *state) summarize(set *workv1alpha1.ManifestWorkReplicaSet, p *placement) workv1alpha1.PlacementSummary {
	var sum workv1alpha1.ManifestWorkReplicaSetSummary
	clusters := p.groups.GetClusters()
	sum.DesiredTotal = len(clusters)
	for cluster := range clusters {
		work := s.works[cluster]
		if work == nil || !work.DeletionTimestamp.IsZero() {
			continue
		}
		sum.Total++
		is := func(kind string) int {
			if apimeta.IsStatusConditionTrue(work.Status.Conditions, kind) {
				return 1
			}
			return 0
		}
		sum.Applied += is(workv1.WorkApplied)
		sum.Available += is(workv1.WorkAvailable)
		sum.Progressing += is(workv1.WorkProgressing)
		sum.Degraded += is(workv1.WorkDegraded)
		if applied := observed(work, workv1.WorkApplied); applied != nil && applied.Status == metav1.ConditionTrue && current(set, p.ref.Name, work) {
			sum.Updated++
		}
	}
	return workv1alpha1.PlacementSummary{
		Name: p.ref.Name, Summary: sum,
		AvailableDecisionGroups: fmt.Sprintf("%d (%d / %d clusters applied)", len(p.groups), sum.Total, sum.DesiredTotal),
	}
}

func add(to *workv1alpha1.ManifestWorkReplicaSetSummary, sum workv1alpha1.ManifestWorkReplicaSetSummary) {
	to.Total += sum.Total
	to.DesiredTotal += sum.DesiredTotal
	to.Applied += sum.Applied
	to.Available += sum.Available
	to.Progressing += sum.Progressing
	to.Degraded += sum.Degraded
	to.Updated += sum.Updated
}

// yes and no are conditions.
func yes(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func no(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// verified says whether the placements chose clusters.
func (s *state) verified(sum workv1alpha1.ManifestWorkReplicaSetSummary) metav1.Condition {
	const kind = workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified
	var undecided []string
	for _, p := range s.placements {
		if p.invalid != nil {
			return no(kind, workv1alpha1.ReasonNotAsExpected,
				fmt.Sprintf("the rolloutStrategy of placement %s is invalid: %v", p.ref.Name, p.invalid))
		}
		if !p.decided {
			undecided = append(undecided, p.ref.Name)
		}
	}
	switch {
	case len(s.placements) == 0:
		return no(kind, workv1alpha1.ReasonNotAsExpected, strings.Join(s.problems, "; "))
	case len(undecided) > 0:
		return no(kind, workv1alpha1.ReasonPlacementDecisionNotFound, "no PlacementDecision for "+strings.Join(undecided, ", "))
	case sum.DesiredTotal == 0:
		return no(kind, workv1alpha1.ReasonPlacementDecisionEmpty, "the placements choose no cluster")
	}
	return yes(kind, workv1alpha1.ReasonAsExpected, fmt.Sprintf("number of clusters chosen: %d", sum.DesiredTotal))
}

// rolledOut says whether every cluster that is chosen has got as far as it can.
func (s *state) rolledOut() metav1.Condition {
	var done, total, timedOut int
	failed := len(s.occupied)
	complete := len(s.placements) > 0 && len(s.problems) == 0
	for _, p := range s.placements {
		done, total = done+p.rollout.Done, total+p.rollout.Total
		failed, timedOut = failed+p.rollout.Failed, timedOut+p.rollout.TimedOut
		complete = complete && p.decided
	}
	message := fmt.Sprintf("%d of %d clusters succeeded, %d failed, %d timed out", done, total, failed, timedOut)
	if complete && done == total {
		return yes(workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, workv1alpha1.ReasonComplete, message)
	}
	return no(workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, workv1alpha1.ReasonProgressing, message)
}

// applied says whether the works that exist are available.
func (s *state) applied(sum workv1alpha1.ManifestWorkReplicaSetSummary, verified string) metav1.Condition {
	const kind = workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied
	message := fmt.Sprintf("%d of %d ManifestWorks are applied, %d are available", sum.Applied, sum.Total, sum.Available)
	switch {
	case len(s.problems) > 0:
		shown := slices.Clone(s.problems[:min(len(s.problems), maxProblems)])
		if more := len(s.problems) - len(shown); more > 0 {
			shown = append(shown, fmt.Sprintf("%d more", more))
		}
		return no(kind, workv1alpha1.ReasonNotAsExpected, strings.Join(shown, "; "))
	case sum.Total == 0 && verified == workv1alpha1.ReasonPlacementDecisionEmpty:
		return no(kind, workv1alpha1.ReasonPlacementDecisionEmpty, "the placements choose no cluster")
	case sum.Total > 0 && sum.Available == sum.Total && sum.Progressing == 0 && sum.Degraded == 0:
		return yes(kind, workv1alpha1.ReasonAsExpected, message)
	case sum.Progressing > 0 && sum.Degraded == 0:
		return no(kind, workv1alpha1.ReasonProcessing, message)
	}
	return no(kind, workv1alpha1.ReasonNotAsExpected, message)
}

// writeStatus writes the status if it is another one, and records what is new.
func (r *reconciler) writeStatus(ctx context.Context, set, before *workv1alpha1.ManifestWorkReplicaSet, s *state) error {
	if equality.Semantic.DeepEqual(set.Status, before.Status) {
		return nil
	}
	err := mergepatch.Write(ctx, r.client, Owner, set, mergepatch.Fields{"status": {
		"conditions": set.Status.Conditions, "summary": set.Status.Summary, "placementSummary": set.Status.PlacementsSummary,
	}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	r.record(set, before, len(s.problems) > 0)
	return nil
}

// record records events for what the placements come to, the end of a rollout, and what
// stands in the way. How far the agents are is none.
func (r *reconciler) record(set, before *workv1alpha1.ManifestWorkReplicaSet, blocked bool) {
	const most = 1000 // What the API server takes.
	for _, c := range set.Status.Conditions {
		kind := corev1.EventTypeNormal
		if c.Status != metav1.ConditionTrue {
			kind = corev1.EventTypeWarning
		}
		old := cmp.Or(apimeta.FindStatusCondition(before.Status.Conditions, c.Type), &metav1.Condition{})
		turned := old.Status != c.Status || old.Reason != c.Reason
		switch c.Type {
		case workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified:
		case workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut:
			turned = turned && c.Status == metav1.ConditionTrue
		default:
			turned = blocked && old.Message != c.Message
		}
		if turned {
			r.events.Eventf(set, nil, kind, c.Reason, c.Type, "%s", c.Message[:min(most, len(c.Message))])
		}
	}
}
