package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
)

// appliedWork is the AppliedManifestWork of a pass and writes it.
type appliedWork struct {
	// AppliedManifestWork is nil while there is none.
	*workv1.AppliedManifestWork

	managed *cluster
	work    *hubWork
	spec    workv1.AppliedManifestWorkSpec
	record  *record
	requeue *requeue
}

// appliedSpec identifies the AppliedManifestWork of a work.
func (r *works) appliedSpec(work *workv1.ManifestWork) workv1.AppliedManifestWorkSpec {
	return workv1.AppliedManifestWorkSpec{
		HubHash: r.session.hash, AgentID: cmp.Or(r.agent.config.AgentID, r.session.hash), ManifestWorkName: work.Name,
	}
}

func (a *appliedWork) exists() bool { return a.AppliedManifestWork != nil }

func (a *appliedWork) deleting() bool { return !a.DeletionTimestamp.IsZero() }

// recorded are the objects in the status.
func (a *appliedWork) recorded() []workv1.AppliedManifestResourceMeta {
	if !a.exists() {
		return nil
	}
	return a.Status.AppliedResources
}

// read reads the AppliedManifestWork from the cache.
func (a *appliedWork) read(ctx context.Context) error { return a.readFrom(ctx, a.managed) }

// readFrom reads the AppliedManifestWork, which may be missing.
func (a *appliedWork) readFrom(ctx context.Context, reader client.Reader) error {
	found := &workv1.AppliedManifestWork{}
	err := reader.Get(ctx, client.ObjectKey{Name: names.AppliedManifestWork(a.spec.HubHash, a.spec.ManifestWorkName)}, found)
	if err == nil {
		a.AppliedManifestWork = found
	}
	return client.IgnoreNotFound(err)
}

// ensure creates the AppliedManifestWork of the work. It ends the pass while an earlier one
// is being deleted, or the cache is behind the agent's last write.
func (a *appliedWork) ensure(ctx context.Context) error {
	if !a.exists() {
		if err := a.create(ctx); err != nil {
			return err
		}
	}
	if a.UID == a.record.owner && stale(a.ResourceVersion, a.record.applied) {
		a.requeue.retry(cacheDelay)
		return errDone
	}
	if err := a.takeOver(ctx); err != nil {
		return err
	}
	if a.deleting() {
		return errDone // Its end wakes the work.
	}
	return nil
}

func (a *appliedWork) create(ctx context.Context) error {
	created := &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Name: names.AppliedManifestWork(a.spec.HubHash, a.spec.ManifestWorkName), Labels: maps.Clone(a.work.Labels),
			Finalizers: []string{names.FinalizerAppliedManifestWork},
		},
		Spec: a.spec,
	}
	err := a.managed.Create(ctx, created)
	if apierrors.IsAlreadyExists(err) { // The cache does not have it yet.
		err = a.managed.live.Get(ctx, client.ObjectKeyFromObject(created), created)
	}
	if err != nil {
		return err
	}
	a.AppliedManifestWork = created
	return nil
}

// takeOver makes the AppliedManifestWork this agent's, with what it owns. One of the same hub
// and work may be left from an agent of another id, whose Klusterlet was deleted, and no other
// agent would ever finish its deletion.
func (a *appliedWork) takeOver(ctx context.Context) error {
	retained := slices.Contains(a.Finalizers, names.FinalizerAppliedManifestWork) || a.deleting()
	if a.Spec == a.spec && retained {
		return nil
	}
	after := a.DeepCopy()
	after.Spec = a.spec
	if !retained {
		after.Finalizers = append(after.Finalizers, names.FinalizerAppliedManifestWork)
	}
	if err := a.managed.Patch(ctx, after, client.MergeFromWithOptions(a.AppliedManifestWork, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	a.wrote(after)
	return nil
}

// patchStatus records the objects that were applied.
func (a *appliedWork) patchStatus(ctx context.Context, resources []workv1.AppliedManifestResourceMeta) error {
	after := a.DeepCopy()
	after.Status.AppliedResources = resources
	if err := a.managed.Status().Patch(ctx, after, client.MergeFromWithOptions(a.AppliedManifestWork, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	a.wrote(after)
	return nil
}

// wrote continues with what a write returned.
func (a *appliedWork) wrote(after *workv1.AppliedManifestWork) {
	a.AppliedManifestWork, a.record.applied = after, after.ResourceVersion
}

// owner returns the reference to an AppliedManifestWork. It is no controller's, so that
// objects may have other owners.
func owner(applied *workv1.AppliedManifestWork) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: schema.GroupVersion(workv1.GroupVersion).String(), Kind: inventory.OwnerKind,
		Name: applied.Name, UID: applied.UID,
	}
}

func byIdentifier(a, b workv1.AppliedManifestResourceMeta) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// resourceOf returns how an AppliedManifestWork records an object.
func resourceOf(key inventory.Key, uid types.UID) workv1.AppliedManifestResourceMeta {
	return workv1.AppliedManifestResourceMeta{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: key.Resource.Group, Resource: key.Resource.Resource, Namespace: key.Namespace, Name: key.Name},
		Version:            key.Resource.Version, UID: string(uid),
	}
}

// keyOf is the inverse of resourceOf.
func keyOf(resource workv1.AppliedManifestResourceMeta) inventory.Key {
	key := inventory.Key{Namespace: resource.Namespace, Name: resource.Name}
	key.Resource.Group, key.Resource.Version, key.Resource.Resource = resource.Group, resource.Version, resource.Resource
	return key
}
