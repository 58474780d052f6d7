package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

// remover deletes the objects of AppliedManifestWorks.
type remover struct {
	managed   *cluster
	inventory *inventory.Inventory
	applier   *strategy.Applier
	clock     clock.PassiveClock
	// interval is how soon objects are read that the inventory does not watch.
	interval time.Duration
}

// remove deletes objects that an AppliedManifestWork owns, and returns those that still
// exist.
func (r *remover) remove(ctx context.Context, owner metav1.OwnerReference, resources []workv1.AppliedManifestResourceMeta) ([]workv1.AppliedManifestResourceMeta, error) {
	var pending []workv1.AppliedManifestResourceMeta
	var errs []error
	for _, resource := range resources {
		var exists bool
		err := r.managed.inServedVersion(&resource, func() error {
			var err error
			exists, err = r.removeOne(ctx, owner, resource)
			return err
		})
		if strategy.Gone(err) {
			exists, err = false, nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("delete %s %s/%s: %w", resource.Resource, resource.Namespace, resource.Name, err))
		}
		if exists || err != nil {
			pending = append(pending, resource)
		}
	}
	return pending, errors.Join(errs...)
}

// recheck returns how soon to look again at objects that are being deleted. The inventory
// does not say when those are gone that it cannot watch.
func (r *remover) recheck(pending []workv1.AppliedManifestResourceMeta) time.Duration {
	unwatched := func(resource workv1.AppliedManifestResourceMeta) bool {
		return r.inventory.State(keyOf(resource).Resource) != inventory.Watched
	}
	if slices.ContainsFunc(pending, unwatched) {
		return min(mostRemoval, r.interval)
	}
	return mostRemoval
}

// removeOne deletes one object, and reports whether it still exists. An object that is
// not the recorded one, or that its AppliedManifestWork does not own, stays; one that has
// another AppliedManifestWork loses only the reference.
func (r *remover) removeOne(ctx context.Context, owner metav1.OwnerReference, resource workv1.AppliedManifestResourceMeta) (exists bool, err error) {
	key := keyOf(resource)
	object, known := r.inventory.Object(key)
	if !known && r.inventory.State(key.Resource) == inventory.Watched {
		return false, nil // The inventory knows every object with such an owner.
	}
	if known {
		exists, err = r.removeKnown(ctx, owner, resource, object, object.ResourceVersion)
		if !apierrors.IsConflict(err) {
			return exists, err
		}
	}
	// What is known may be old.
	read, err := r.managed.objects(key).Get(ctx, key.Name, metav1.GetOptions{})
	if strategy.Gone(err) {
		r.inventory.Forget(key, object.UID)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	exists, err = r.removeKnown(ctx, owner, resource, r.inventory.Observe(key, read), "")
	if apierrors.IsConflict(err) {
		return false, nil // It is another object by now.
	}
	return exists, err
}

// removeKnown deletes the object if it is still of this version, unless that is empty.
func (r *remover) removeKnown(ctx context.Context, owner metav1.OwnerReference, resource workv1.AppliedManifestResourceMeta, object inventory.Object, version string) (exists bool, err error) {
	key := keyOf(resource)
	switch {
	case !object.OwnedBy(owner.UID), string(object.UID) != resource.UID:
		return false, nil
	case len(object.Owners) > 1:
		return false, r.release(ctx, key, owner)
	case object.Deleting:
		return true, nil
	}
	options := metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &object.UID},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	}
	if version != "" {
		options.Preconditions.ResourceVersion = &version
	}
	err = r.managed.objects(key).Delete(ctx, key.Name, options)
	if strategy.Gone(err) {
		r.inventory.Forget(key, object.UID)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	log.FromContext(ctx).Info("Deleted an object that is not part of its ManifestWork any more",
		"resource", key.Resource, "namespace", key.Namespace, "name", key.Name)
	return true, nil
}

// wrote reports whether the agent wrote an object. A copy of an object that a user made of
// it, or a controller, has the same owner reference and was never part of a work.
func (r *remover) wrote(ctx context.Context, key inventory.Key, uid types.UID) (bool, error) {
	object, err := r.managed.objects(key).Get(ctx, key.Name, metav1.GetOptions{})
	if strategy.Gone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out who wrote %s %s/%s: %w", key.Resource.Resource, key.Namespace, key.Name, err)
	}
	return object.UID == uid && slices.ContainsFunc(object.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(e.Manager, workv1.DefaultFieldManager)
	}), nil
}

// release removes the owner reference from an object.
func (r *remover) release(ctx context.Context, key inventory.Key, owner metav1.OwnerReference) error {
	object := &unstructured.Unstructured{}
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	return r.applier.Release(ctx, strategy.Request{Resource: key.Resource, Manifest: object, Owner: owner})
}

// ownerOf returns the reference to an AppliedManifestWork of which only the UID is
// known to matter.
func ownerOf(uid types.UID) metav1.OwnerReference { return metav1.OwnerReference{UID: uid} }
