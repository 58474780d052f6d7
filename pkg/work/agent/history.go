package agent

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// history is what the status of a work says at the beginning of a pass: what earlier passes,
// also those of another process, reported of its manifests.
type history struct {
	work  *hubWork
	index status.Index
}

func newHistory(work *hubWork) history {
	return history{work: work, index: status.NewIndex(work.Status.ResourceStatus.Manifests)}
}

// condition returns a condition of a manifest, nil if it was not reported.
func (h history) condition(o *object, kind string) *metav1.Condition {
	entry, _ := h.index.Find(o.meta)
	return apimeta.FindStatusCondition(entry.Conditions, kind)
}

// applied reports whether this generation of the manifest was applied.
func (h history) applied(o *object) bool {
	c := h.condition(o, workv1.ManifestApplied)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == h.work.Generation
}

// completed reports whether a manifest is complete, and with it what is applied of it.
func (h history) completed(o *object) bool {
	return apimeta.IsStatusConditionTrue(h.work.Status.Conditions, workv1.WorkComplete) || h.index.Completed(o.meta)
}

// done reports whether nothing of a manifest is applied any more: it is complete, or its
// object has finished, in this generation of the work, and is gone.
func (h history) done(o *object, exists bool) bool {
	return h.completed(o) || !exists && h.index.Finished(o.meta, h.work.Generation)
}

// ruled reports whether rules have set something in what was reported of a manifest.
func (h history) ruled(o *object) bool {
	entry, _ := h.index.Find(o.meta)
	return len(entry.StatusFeedbacks.Values) > 0 || slices.ContainsFunc(entry.Conditions, status.SetByRule)
}
