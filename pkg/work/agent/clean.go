package agent

import (
	"context"
	"errors"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
)

// cleaner deletes the objects that left the work, and records the others in its
// AppliedManifestWork.
type cleaner struct{ *scope }

// clean is the phase of the cleaner. The work is reported also after a failure.
func (c *cleaner) clean(ctx context.Context) error {
	c.failures = append(c.failures, c.removeDropped(ctx))
	return nil
}

func (c *cleaner) removeDropped(ctx context.Context) error {
	wanted := c.present()
	dropped, errDropped := c.dropped(ctx, wanted)
	pending, err := c.agent.remover.remove(ctx, owner(c.applied.AppliedManifestWork), dropped)
	err = errors.Join(errDropped, err)
	if len(pending) > 0 {
		c.requeue.retry(c.agent.remover.recheck(pending))
		c.findHoldUp(ctx, pending)
	} else {
		c.record.holdUp = holdUp{}
	}
	resources := append(wanted, pending...)
	slices.SortStableFunc(resources, byIdentifier)
	if apiequality.Semantic.DeepEqual(resources, c.applied.recorded()) {
		return err
	}
	if errPatch := c.applied.patchStatus(ctx, resources); errPatch != nil {
		return errors.Join(err, errPatch)
	}
	c.subscribe(resources)
	return err
}

// findHoldUp finds out what holds the deletion of objects up that left the work, not more
// often than every blockedAfter: each deletion that ends is a pass.
func (c *cleaner) findHoldUp(ctx context.Context, pending []workv1.AppliedManifestResourceMeta) {
	next := c.record.holdUp.at.Add(blockedAfter)
	if !next.After(c.now) {
		c.record.holdUp = holdUp{text: c.agent.remover.blocked(ctx, pending), at: c.now}
		next = c.now.Add(blockedAfter)
	}
	if c.record.holdUp.text == "" {
		c.requeue.retry(next.Sub(c.now))
	}
}

// present returns the objects of the work that exist. Those of kinds that cannot be
// mapped now stay as they were recorded.
func (c *cleaner) present() []workv1.AppliedManifestResourceMeta {
	recorded := make(map[workv1.ResourceIdentifier]workv1.AppliedManifestResourceMeta, len(c.applied.recorded()))
	for _, resource := range c.applied.recorded() {
		recorded[resource.ResourceIdentifier] = resource
	}
	var resources []workv1.AppliedManifestResourceMeta
	for _, o := range c.objects {
		if o.Object == nil {
			continue
		}
		if !o.mapped() {
			resources = append(resources, c.unmapped(o)...)
			continue
		}
		id := manifest.Identifier(o.meta)
		live, exists := o.live()
		switch before, ok := recorded[id]; {
		case exists:
			resources = append(resources, workv1.AppliedManifestResourceMeta{ResourceIdentifier: id, Version: o.meta.Version, UID: string(live.UID)})
		case ok && o.err != nil:
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
func (c *cleaner) unmapped(o *object) []workv1.AppliedManifestResourceMeta {
	var resources []workv1.AppliedManifestResourceMeta
	for _, r := range c.applied.recorded() {
		if r.Group == o.meta.Group && r.Version == o.meta.Version && r.Name == o.meta.Name && (r.Namespace == o.meta.Namespace || r.Namespace == "") {
			resources = append(resources, r)
		}
	}
	return resources
}

// dropped returns the objects that were applied and left the work. Objects of a pass
// that ended before it recorded them are found by their owner.
func (c *cleaner) dropped(ctx context.Context, wanted []workv1.AppliedManifestResourceMeta) ([]workv1.AppliedManifestResourceMeta, error) {
	known := make(map[workv1.ResourceIdentifier]bool, len(wanted))
	uids := make(map[string]bool, len(wanted))
	for _, resource := range wanted {
		known[resource.ResourceIdentifier], uids[resource.UID] = true, true
	}
	for _, o := range c.objects {
		known[manifest.Identifier(o.meta)] = true // Also what could not be created.
	}
	var dropped []workv1.AppliedManifestResourceMeta
	add := func(resource workv1.AppliedManifestResourceMeta) {
		if !known[resource.ResourceIdentifier] && !uids[resource.UID] {
			known[resource.ResourceIdentifier] = true
			dropped = append(dropped, resource)
		}
	}
	for _, resource := range c.applied.recorded() {
		add(resource)
	}
	unmapped := slices.ContainsFunc(c.objects, func(o *object) bool { return !o.mapped() })
	if c.record.seen == c.work.Generation || unmapped {
		return dropped, nil
	}
	var errs []error
	for key, live := range c.agent.inventory.Owned(c.applied.UID) {
		resource := resourceOf(key, live.UID)
		if known[resource.ResourceIdentifier] || uids[resource.UID] {
			continue
		}
		written, err := c.agent.remover.wrote(ctx, key, live.UID)
		if written {
			add(resource)
		}
		errs = append(errs, err)
	}
	return dropped, errors.Join(errs...)
}
