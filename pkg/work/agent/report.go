package agent

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// reporter reports on the hub what the phases before it found.
type reporter struct{ *scope }

// report is the phase of the reporter. What could not be reported is observed again.
func (r *reporter) report(ctx context.Context) error {
	err := r.patchStatus(ctx)
	if err != nil {
		r.record.unreport(r.now)
	}
	r.failures = append(r.failures, err)
	return nil
}

// patchStatus writes the status of the work, if it changed.
func (r *reporter) patchStatus(ctx context.Context) error {
	found := make([]workv1.ManifestCondition, len(r.objects))
	failing := 0
	for i, o := range r.objects {
		found[i] = o.found
		if o.err != nil {
			failing++
		}
	}
	r.agent.metrics.report(r.work.Name, failing)
	before, after := r.work.Status.Conditions, r.work.Status
	status.Update(&after, r.work.Generation, found, metav1.NewTime(r.now))
	if applied := apimeta.FindStatusCondition(after.Conditions, workv1.WorkApplied); applied != nil {
		*applied = status.Remark(*applied, r.record.holdUp.text)
	}
	if err := r.work.patchStatus(ctx, after); err != nil {
		return err
	}
	r.announce(ctx, before, after.Conditions)
	return nil
}
