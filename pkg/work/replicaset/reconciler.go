package replicaset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
)

// recheck is when a set looks again whether the name of its works has become free: the
// deletion of a ManifestWork without its label is no event for it.
const recheck = time.Minute

type reconciler struct {
	// client writes, and reads from the cache.
	client client.Client
	// live reads from the API server.
	live   client.Reader
	events events.EventRecorder
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	if err := r.client.Get(ctx, req.NamespacedName, set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !set.DeletionTimestamp.IsZero() {
		// The last work that goes is an event.
		_, err := r.finalize(ctx, set)
		return mergepatch.Settled(ctrl.Result{}, err)
	}
	if controllerutil.AddFinalizer(set, workv1alpha1.ManifestWorkReplicaSetFinalizer) {
		if err := r.writeFinalizers(ctx, set); err != nil {
			return mergepatch.Settled(ctrl.Result{}, err)
		}
	}
	return mergepatch.Settled(r.deploy(ctx, set))
}

// deploy makes the works what they are to be, as far as their rollouts let it, and
// reports how far they are.
func (r *reconciler) deploy(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) (ctrl.Result, error) {
	before := set.DeepCopy()
	if problem := unlabelable(set); problem != "" {
		stuck := &state{problems: []string{problem}}
		report(set, stuck)
		return ctrl.Result{}, r.writeStatus(ctx, set, before, stuck)
	}
	found, err := r.survey(ctx, set)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = r.carry(ctx, set, &found)
	report(set, &found)
	result := ctrl.Result{RequeueAfter: found.recheck()}
	return result, errors.Join(err, r.writeStatus(ctx, set, before, &found))
}

// unlabelable is why works cannot have the labels that name their set and placement.
func unlabelable(set *workv1alpha1.ManifestWorkReplicaSet) string {
	if problems := validation.IsValidLabelValue(key(set)); len(problems) > 0 {
		return fmt.Sprintf("no ManifestWork can have the label %s=%s: %s; shorten the name",
			workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey, key(set), strings.Join(problems, "; "))
	}
	for _, ref := range set.Spec.PlacementRefs {
		if problems := validation.IsValidLabelValue(ref.Name); len(problems) > 0 {
			return fmt.Sprintf("no ManifestWork can have the label %s=%s: %s; shorten the name of the placement",
				workv1alpha1.ManifestWorkReplicaSetPlacementNameLabelKey, ref.Name, strings.Join(problems, "; "))
		}
	}
	return ""
}

// key is how the label of a work names its set.
func key(set *workv1alpha1.ManifestWorkReplicaSet) string { return set.Namespace + "." + set.Name }

// finalize deletes the works, and lets the set go: at once, or when they are gone. It
// reports whether the set waits for them.
func (r *reconciler) finalize(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) (waits bool, err error) {
	if !controllerutil.ContainsFinalizer(set, workv1alpha1.ManifestWorkReplicaSetFinalizer) {
		return false, nil
	}
	if unlabelable(set) == "" {
		left, err := r.deleteAll(ctx, set)
		if err != nil {
			return false, err
		}
		if left > 0 && set.Spec.CascadeDeletionPolicy == workv1alpha1.Foreground {
			return true, nil
		}
	}
	controllerutil.RemoveFinalizer(set, workv1alpha1.ManifestWorkReplicaSetFinalizer)
	return false, client.IgnoreNotFound(r.writeFinalizers(ctx, set))
}

// deleteAll deletes all works of a set, and returns how many there still are. The cache
// may lack a work that was made just before.
func (r *reconciler) deleteAll(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) (int, error) {
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(schema.GroupVersion(workv1.GroupVersion).WithKind("ManifestWorkList"))
	err := r.live.List(ctx, works, ofSet(set))
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return 0, nil // The hub is taken apart: their CRD went first.
	}
	if err != nil {
		return 0, fmt.Errorf("list ManifestWorks: %w", err)
	}
	var errs []error
	for i := range works.Items {
		errs = append(errs, r.deleteWork(ctx, &works.Items[i]))
	}
	return len(works.Items), errors.Join(errs...)
}

func ofSet(set *workv1alpha1.ManifestWorkReplicaSet) client.MatchingLabels {
	return client.MatchingLabels{workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey: key(set)}
}

// deleteWork deletes a work as it was read, unless that has begun.
func (r *reconciler) deleteWork(ctx context.Context, work client.Object) error {
	if work.GetDeletionTimestamp() != nil {
		return nil
	}
	uid, version := work.GetUID(), work.GetResourceVersion()
	// The version: it may have lost the label since.
	err := r.client.Delete(ctx, work, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ManifestWork %s: %w", client.ObjectKeyFromObject(work), err)
	}
	return nil
}

func (r *reconciler) writeFinalizers(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) error {
	if err := mergepatch.Write(ctx, r.client, Owner, set, mergepatch.Fields{"metadata": {"finalizers": set.Finalizers}}); err != nil {
		return fmt.Errorf("write the finalizers: %w", err)
	}
	return nil
}
