package agent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
)

// readApplied reads the AppliedManifestWork of the work from the cache.
func (p *pass) readApplied(ctx context.Context) error {
	cached := &workv1.AppliedManifestWork{}
	err := p.agent.managed.Get(ctx, client.ObjectKey{Name: names.AppliedManifestWork(p.session.hash, p.work.Name)}, cached)
	if err == nil {
		p.applied = cached
	}
	return client.IgnoreNotFound(err)
}

// ensureApplied creates the AppliedManifestWork of the work. It returns false while an
// earlier one is being deleted, or the cache is behind our last write.
func (p *pass) ensureApplied(ctx context.Context) (ready bool, err error) {
	if p.applied == nil {
		if err := p.createApplied(ctx); err != nil {
			return false, err
		}
	}
	if p.applied.UID == p.record.owner && stale(p.applied.ResourceVersion, p.record.applied) {
		p.requeue.retry(cacheDelay)
		return false, nil
	}
	if err := p.takeOverApplied(ctx); err != nil {
		return false, err
	}
	if !p.applied.DeletionTimestamp.IsZero() {
		return false, nil // Its end wakes the work.
	}
	p.record.begin(p.applied.UID, p.work.Generation)
	return true, nil
}

// appliedSpec is what identifies the AppliedManifestWork of the work.
func (p *pass) appliedSpec() workv1.AppliedManifestWorkSpec {
	return workv1.AppliedManifestWorkSpec{
		HubHash: p.session.hash, AgentID: cmp.Or(p.agent.config.AgentID, p.session.hash), ManifestWorkName: p.work.Name,
	}
}

// takeOverApplied makes the AppliedManifestWork this agent's, with what it owns. One of
// the same hub and work may be left from an agent of another id, whose Klusterlet was
// deleted, and no other agent would ever finish its deletion.
func (p *pass) takeOverApplied(ctx context.Context) error {
	spec := p.appliedSpec()
	retained := slices.Contains(p.applied.Finalizers, names.FinalizerAppliedManifestWork) || !p.applied.DeletionTimestamp.IsZero()
	if p.applied.Spec == spec && retained {
		return nil
	}
	return p.patchApplied(ctx, func(applied *workv1.AppliedManifestWork) {
		applied.Spec = spec
		if !retained {
			applied.Finalizers = append(applied.Finalizers, names.FinalizerAppliedManifestWork)
		}
	})
}

func (p *pass) createApplied(ctx context.Context) error {
	spec := p.appliedSpec()
	created := &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Name: names.AppliedManifestWork(spec.HubHash, p.work.Name), Labels: maps.Clone(p.work.Labels),
			Finalizers: []string{names.FinalizerAppliedManifestWork},
		},
		Spec: spec,
	}
	err := p.agent.managed.Create(ctx, created)
	if apierrors.IsAlreadyExists(err) { // The cache does not have it yet.
		err = p.agent.managed.live.Get(ctx, client.ObjectKeyFromObject(created), created)
	}
	if err != nil {
		return err
	}
	p.applied = created
	return nil
}

func (p *pass) patchApplied(ctx context.Context, change func(*workv1.AppliedManifestWork)) error {
	after := p.applied.DeepCopy()
	change(after)
	if err := p.agent.managed.Patch(ctx, after, client.MergeFromWithOptions(p.applied, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	p.applied, p.record.applied = after, after.ResourceVersion
	return nil
}

// recordApplied removes the objects that left the work, and records the others.
func (p *pass) recordApplied(ctx context.Context) error {
	wanted := p.present()
	dropped, errDropped := p.dropped(ctx, wanted)
	pending, err := p.agent.remove(ctx, owner(p.applied), dropped)
	err = errors.Join(errDropped, err)
	if len(pending) > 0 {
		p.requeue.retry(p.agent.removal(pending))
		p.findHoldUp(ctx, pending)
	} else {
		p.record.holdUp = holdUp{}
	}
	resources := append(wanted, pending...)
	slices.SortStableFunc(resources, byIdentifier)
	if apiequality.Semantic.DeepEqual(resources, p.applied.Status.AppliedResources) {
		return err
	}
	after := p.applied.DeepCopy()
	after.Status.AppliedResources = resources
	if errPatch := p.agent.managed.Status().Patch(ctx, after, client.MergeFromWithOptions(p.applied, client.MergeFromWithOptimisticLock{})); errPatch != nil {
		return errors.Join(err, errPatch)
	}
	p.applied, p.record.applied = after, after.ResourceVersion
	p.subscribe(resources)
	return err
}

// findHoldUp finds out what holds the deletion of objects up that left the work, not more
// often than every blockedAfter: each deletion that ends is a pass.
func (p *pass) findHoldUp(ctx context.Context, pending []workv1.AppliedManifestResourceMeta) {
	next := p.record.holdUp.at.Add(blockedAfter)
	if !next.After(p.now) {
		p.record.holdUp = holdUp{text: p.agent.blocked(ctx, pending), at: p.now}
		next = p.now.Add(blockedAfter)
	}
	if p.record.holdUp.text == "" {
		p.requeue.retry(next.Sub(p.now))
	}
}

// present returns the objects of the work that exist. Those of kinds that cannot be
// mapped now stay as they were recorded.
func (p *pass) present() []workv1.AppliedManifestResourceMeta {
	recorded := make(map[workv1.ResourceIdentifier]workv1.AppliedManifestResourceMeta, len(p.applied.Status.AppliedResources))
	for _, resource := range p.applied.Status.AppliedResources {
		recorded[resource.ResourceIdentifier] = resource
	}
	var resources []workv1.AppliedManifestResourceMeta
	for _, it := range p.items {
		if it.Object == nil {
			continue
		}
		if !it.mapped() {
			resources = append(resources, p.unmapped(it)...)
			continue
		}
		id := manifest.Identifier(it.meta)
		object, exists := p.agent.inventory.Object(it.key)
		switch before, ok := recorded[id]; {
		case exists:
			resources = append(resources, workv1.AppliedManifestResourceMeta{ResourceIdentifier: id, Version: it.meta.Version, UID: string(object.UID)})
		case ok && it.err != nil:
			resources = append(resources, before)
		}
	}
	slices.SortStableFunc(resources, byIdentifier)
	return slices.CompactFunc(resources, func(a, b workv1.AppliedManifestResourceMeta) bool {
		return a.ResourceIdentifier == b.ResourceIdentifier
	})
}

// unmapped returns the recorded objects that may be that of a manifest whose resource is
// not known now, as when discovery of its group fails.
func (p *pass) unmapped(it *item) []workv1.AppliedManifestResourceMeta {
	var resources []workv1.AppliedManifestResourceMeta
	for _, r := range p.applied.Status.AppliedResources {
		if r.Group == it.meta.Group && r.Version == it.meta.Version && r.Name == it.meta.Name && (r.Namespace == it.meta.Namespace || r.Namespace == "") {
			resources = append(resources, r)
		}
	}
	return resources
}

// dropped returns the objects that were applied and left the work. Objects of a pass
// that ended before it recorded them are found by their owner.
func (p *pass) dropped(ctx context.Context, wanted []workv1.AppliedManifestResourceMeta) ([]workv1.AppliedManifestResourceMeta, error) {
	known := make(map[workv1.ResourceIdentifier]bool, len(wanted))
	uids := make(map[string]bool, len(wanted))
	for _, resource := range wanted {
		known[resource.ResourceIdentifier], uids[resource.UID] = true, true
	}
	for _, it := range p.items {
		known[manifest.Identifier(it.meta)] = true // Also what could not be created.
	}
	var dropped []workv1.AppliedManifestResourceMeta
	add := func(resource workv1.AppliedManifestResourceMeta) {
		if !known[resource.ResourceIdentifier] && !uids[resource.UID] {
			known[resource.ResourceIdentifier] = true
			dropped = append(dropped, resource)
		}
	}
	for _, resource := range p.applied.Status.AppliedResources {
		add(resource)
	}
	unmapped := slices.ContainsFunc(p.items, func(it *item) bool { return !it.mapped() })
	if p.record.seen == p.work.Generation || unmapped {
		return dropped, nil
	}
	var errs []error
	for key, object := range p.agent.inventory.Owned(p.applied.UID) {
		resource := resourceOf(key, object.UID)
		if known[resource.ResourceIdentifier] || uids[resource.UID] {
			continue
		}
		written, err := p.agent.wrote(ctx, key, object.UID)
		if written {
			add(resource)
		}
		errs = append(errs, err)
	}
	return dropped, errors.Join(errs...)
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
