package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
)

// eventSource names the agent in events on the hub, which are about works.
const eventSource = "work-agent"

// announce records an event, and logs a line, when a work can no longer be applied, or can
// be again. A work that is applied at once, as most are, has none.
func (r *reporter) announce(ctx context.Context, before, after []metav1.Condition) {
	was, is := apimeta.FindStatusCondition(before, workv1.WorkApplied), apimeta.FindStatusCondition(after, workv1.WorkApplied)
	failed := was != nil && was.Status == metav1.ConditionFalse
	switch {
	case is == nil:
	case is.Status == metav1.ConditionTrue && failed:
		log.FromContext(ctx).Info("A ManifestWork is applied")
		r.works.events.Eventf(r.work.ManifestWork, nil, corev1.EventTypeNormal, "Applied", "Apply", "applied all %d manifests", len(r.objects))
	case is.Status == metav1.ConditionFalse && (!failed || was.ObservedGeneration != is.ObservedGeneration):
		trouble := r.trouble()
		log.FromContext(ctx).Info("A ManifestWork cannot be applied", "reason", trouble)
		r.works.events.Eventf(r.work.ManifestWork, nil, corev1.EventTypeWarning, "ApplyFailed", "Apply", "%s", trouble)
	}
}

// trouble says how many manifests failed, and why the first of them did. The note of an
// event is limited to 1 KiB.
func (r *reporter) trouble() string {
	failed, first := 0, ""
	for _, o := range r.objects {
		if o.err == nil {
			continue
		}
		if failed++; failed == 1 {
			first = fmt.Sprintf("manifest %d: %s", o.Ordinal, excerpt.Of(o.err.Error(), 700))
		}
	}
	return fmt.Sprintf("%d of %d manifests cannot be applied; %s", failed, len(r.objects), first)
}
