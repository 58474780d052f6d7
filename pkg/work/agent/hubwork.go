package agent

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// hubWork is the ManifestWork of a pass and writes it. It begins with the cache's copy, which
// is not changed, and continues with what the hub returns.
type hubWork struct {
	*workv1.ManifestWork

	hub    client.Client
	record *record
}

// retained reports whether the work has the agent's finalizer.
func (w *hubWork) retained() bool { return slices.Contains(w.Finalizers, names.FinalizerManifestWork) }

// ensureFinalizer retains the work until what was applied of it is deleted.
func (w *hubWork) ensureFinalizer(ctx context.Context) error {
	if w.retained() {
		return nil
	}
	return w.patchFinalizers(ctx, append(slices.Clone(w.Finalizers), names.FinalizerManifestWork))
}

// removeFinalizer lets the hub delete the work.
func (w *hubWork) removeFinalizer(ctx context.Context) error {
	finalizers := slices.DeleteFunc(slices.Clone(w.Finalizers), func(f string) bool { return f == names.FinalizerManifestWork })
	return client.IgnoreNotFound(w.patchFinalizers(ctx, finalizers))
}

func (w *hubWork) patchFinalizers(ctx context.Context, finalizers []string) error {
	before := w.skeleton()
	after := w.skeleton()
	after.Finalizers = finalizers
	if err := w.hub.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	w.wrote(after)
	return nil
}

// patchStatus writes the status, if it changed.
func (w *hubWork) patchStatus(ctx context.Context, wanted workv1.ManifestWorkStatus) error {
	if apiequality.Semantic.DeepEqual(w.Status, wanted) {
		return nil
	}
	before, after := w.skeleton(), w.skeleton()
	before.Status = w.Status
	wanted.DeepCopyInto(&after.Status) // The response is decoded into it.
	err := w.hub.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return err
	}
	w.wrote(after)
	return nil
}

// skeleton is the work without spec and status, for patches: an encoded spec can be
// large.
func (w *hubWork) skeleton() *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: w.Name, UID: w.UID, ResourceVersion: w.ResourceVersion,
		Finalizers: slices.Clone(w.Finalizers), // A response is decoded into it.
	}}
}

// wrote continues with the work that a write returned.
func (w *hubWork) wrote(work *workv1.ManifestWork) {
	w.ManifestWork = work
	w.record.written = work.ResourceVersion
}
