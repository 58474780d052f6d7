package status

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Index finds the entries of manifests in the status of a work.
type Index struct {
	exact map[workv1.ManifestResourceMeta]workv1.ManifestCondition
	// moved is by everything but the ordinal. It is nil for what the status has twice.
	moved map[workv1.ManifestResourceMeta]*workv1.ManifestCondition
}

// NewIndex returns an index of status.resourceStatus.manifests.
func NewIndex(entries []workv1.ManifestCondition) Index {
	i := Index{
		exact: make(map[workv1.ManifestResourceMeta]workv1.ManifestCondition, len(entries)),
		moved: make(map[workv1.ManifestResourceMeta]*workv1.ManifestCondition, len(entries)),
	}
	for n := range entries {
		meta := entries[n].ResourceMeta
		i.exact[meta] = entries[n]
		meta.Ordinal = 0
		if _, twice := i.moved[meta]; twice {
			i.moved[meta] = nil
			continue
		}
		i.moved[meta] = &entries[n]
	}
	return i
}

// Find returns the entry of a manifest, also if it was at another place of the spec then.
func (i Index) Find(meta workv1.ManifestResourceMeta) (workv1.ManifestCondition, bool) {
	if entry, ok := i.exact[meta]; ok {
		return entry, true
	}
	meta.Ordinal = 0
	if meta == (workv1.ManifestResourceMeta{}) || i.moved[meta] == nil {
		return workv1.ManifestCondition{}, false
	}
	return *i.moved[meta], true
}

// Finished reports whether the object of a manifest finished in a generation of the work:
// it does not run again if it goes.
func (i Index) Finished(meta workv1.ManifestResourceMeta, generation int64) bool {
	entry, _ := i.Find(meta)
	ready := apimeta.FindStatusCondition(entry.Conditions, names.ConditionReady)
	return ready != nil && ready.Reason == names.ReasonResourceFinished && ready.ObservedGeneration == generation
}

// Completed reports whether a manifest is complete: nothing of it is applied any more.
func (i Index) Completed(meta workv1.ManifestResourceMeta) bool {
	entry, _ := i.Find(meta)
	return apimeta.IsStatusConditionTrue(entry.Conditions, workv1.ManifestComplete)
}
