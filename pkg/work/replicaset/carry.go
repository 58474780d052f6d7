package replicaset

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
)

// carry deletes the works that are not to be, and makes those whose turn it is. What
// fails on one cluster keeps no other waiting.
func (r *reconciler) carry(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, s *state) error {
	var errs []error
	try := func(err error) {
		errs = append(errs, err)
		// What only says that the cache is behind is tried again at once.
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			s.problems = append(s.problems, err.Error())
		}
	}
	for _, work := range s.surplus {
		try(r.deleteWork(ctx, work))
	}
	for _, cluster := range sets.List(s.occupied) {
		s.problems = append(s.problems, fmt.Sprintf("ManifestWork %s/%s does not belong to this ManifestWorkReplicaSet: rename one of them", cluster, set.Name))
	}
	for _, p := range s.placements {
		if p.invalid != nil {
			s.problems = append(s.problems, fmt.Sprintf("the rolloutStrategy of placement %s is invalid: %v", p.ref.Name, p.invalid))
			continue
		}
		for _, cluster := range p.rollout.Release {
			work, err := r.ensure(ctx, set, p.ref.Name, cluster, s.works[cluster])
			if err == nil {
				s.works[cluster] = work
			}
			try(err)
		}
	}
	return errors.Join(errs...)
}

// ensure makes the work of a cluster what it is to be, and returns it.
func (r *reconciler) ensure(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, placement, cluster string, work *workv1.ManifestWork) (*workv1.ManifestWork, error) {
	if work == nil {
		work = &workv1.ManifestWork{}
		work.Namespace, work.Name = cluster, set.Name
		work.Labels = labels(set, placement)
		set.Spec.ManifestWorkTemplate.DeepCopyInto(&work.Spec)
		if err := r.client.Create(ctx, work, Owner); err != nil {
			return nil, fmt.Errorf("create ManifestWork %s/%s: %w", cluster, set.Name, err)
		}
		return work, nil
	}
	// The version: it may have lost the label since.
	patch := client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{})
	work = work.DeepCopy()
	maps.Copy(work.Labels, labels(set, placement))
	set.Spec.ManifestWorkTemplate.DeepCopyInto(&work.Spec)
	if err := r.client.Patch(ctx, work, patch, Owner); err != nil {
		return nil, fmt.Errorf("change ManifestWork %s/%s: %w", cluster, work.Name, err)
	}
	return work, nil
}

// labels are the labels of the works of a set that a placement chose.
func labels(set *workv1alpha1.ManifestWorkReplicaSet, placement string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, set.Labels)
	all[workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey] = key(set)
	all[workv1alpha1.ManifestWorkReplicaSetPlacementNameLabelKey] = placement
	return all
}
