package agent

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

const (
	// mostWatchStart is how soon a work is looked at again whose objects are being
	// listed, even if the inventory does not say that they are.
	mostWatchStart = 30 * time.Second
	// blindInterval is how often objects are read that cannot be watched.
	blindInterval = 4 * time.Minute
)

// item is a manifest of a work on its way.
type item struct {
	manifest.Manifest

	meta    workv1.ManifestResourceMeta
	key     inventory.Key
	options manifest.Options
	orphan  bool
	// desired digests everything that decides what is applied.
	desired uint64
	// err is why the manifest is not applied.
	err error
	// checked is true if the executor was asked for, and refused is the answer.
	checked bool
	refused error
	// waits is true while an earlier result of this manifest remains reported.
	waits bool
	// found is what is reported.
	found workv1.ManifestCondition
}

// mapped reports whether the cluster serves the kind of the manifest.
func (it *item) mapped() bool { return it.key.Resource.Resource != "" }

// read reports whether the status of the object matters.
func (it *item) read() bool { return it.asked() || it.mayBeReady() }

// asked reports whether the work asks for something in the status.
func (it *item) asked() bool { return len(it.options.Feedback) > 0 || len(it.options.Conditions) > 0 }

// mayBeReady reports whether the object may say whether it is ready.
func (it *item) mayBeReady() bool { return status.MayBeReady(it.Object.GroupVersionKind().GroupKind()) }

// readOnly reports whether the manifest is never applied.
func (it *item) readOnly() bool { return it.options.Update.Type == workv1.UpdateStrategyTypeReadOnly }

// resolve decodes the manifests, and subscribes to their objects. While a kind is
// unknown it subscribes to CRDs as well.
func (p *pass) resolve() {
	manifests := manifest.Decode(p.work)
	p.items = make([]*item, len(manifests))
	p.interests = nil
	unknown := false
	written := map[inventory.Key]bool{}
	for i, m := range manifests {
		it := &item{Manifest: m, err: m.Err}
		p.items[i] = it
		it.meta = m.Meta(nil)
		if m.Object == nil || m.Object.GetName() == "" {
			continue
		}
		mapping, err := p.mapping(m)
		if err != nil {
			unknown = unknown || apimeta.IsNoMatchError(err)
			it.err = err
			continue
		}
		p.complete(it, mapping)
		if it.err == nil && !unique(it.key, written) {
			it.err = manifest.Duplicate(it.meta)
		}
		if it.err == nil {
			p.interests = append(p.interests, inventory.Interest{Key: it.key, Status: it.read()})
		}
	}
	if unknown {
		crds := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
		p.interests = append(p.interests, inventory.Interest{Key: inventory.Key{Resource: crds}})
	}
	var recorded []workv1.AppliedManifestResourceMeta
	if p.applied != nil {
		recorded = p.applied.Status.AppliedResources
	}
	p.subscribe(recorded)
}

// unique reports whether no earlier manifest of the work is about the same object, and
// remembers this one. The texts of two manifests of one object may differ: in the version,
// and in the namespace if the kind has none.
func unique(key inventory.Key, written map[inventory.Key]bool) bool {
	key.Resource.Version = ""
	if written[key] {
		return false
	}
	written[key] = true
	return true
}

// subscribe subscribes to the objects of the work and to further ones that were applied
// before, to hear of the end of their deletion.
func (p *pass) subscribe(recorded []workv1.AppliedManifestResourceMeta) {
	wanted := make(map[inventory.Key]bool, len(p.interests))
	for _, interest := range p.interests {
		wanted[interest.Key] = true
	}
	all := slices.Clone(p.interests)
	for _, resource := range recorded {
		if key := keyOf(resource); !wanted[key] {
			all = append(all, inventory.Interest{Key: key})
		}
	}
	p.agent.inventory.Subscribe(workPrefix+p.work.Name, all)
}

func (p *pass) mapping(m manifest.Manifest) (*apimeta.RESTMapping, error) {
	kind := m.Object.GroupVersionKind()
	mapping, err := p.agent.managed.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if apimeta.IsNoMatchError(err) {
		return nil, &unknownKindError{kind.Kind, err}
	}
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", kind.Kind, err)
	}
	return mapping, nil
}

// unknownKindError is the error for a kind that the cluster does not serve, in the words
// of OCM's work agent.
type unknownKindError struct {
	kind string
	err  error
}

// Error implements error.
func (e *unknownKindError) Error() string {
	return fmt.Sprintf("the server doesn't have a resource type %q", e.kind)
}

// Unwrap returns the mapper's error.
func (e *unknownKindError) Unwrap() error { return e.err }

// complete fills in what depends on the resource of a manifest.
func (p *pass) complete(it *item, mapping *apimeta.RESTMapping) {
	it.meta = it.Meta(mapping)
	it.Object.SetNamespace(it.meta.Namespace)
	it.key = inventory.Key{Resource: mapping.Resource, Namespace: it.meta.Namespace, Name: it.meta.Name}
	id := manifest.Identifier(it.meta)
	it.options = manifest.OptionsFor(p.work, id)
	it.orphan = manifest.Orphaned(p.work, id)
	it.desired = p.digest(it)
}

// digest digests everything that decides what is applied of a manifest. The owner of
// the object is part of it through the record, which is the work's.
func (p *pass) digest(it *item) uint64 {
	var h maphash.Hash
	h.SetSeed(p.records.seed)
	_, _ = h.Write(p.work.Spec.Workload.Manifests[it.Ordinal].Raw) // A hash never fails to write.
	_ = json.NewEncoder(&h).Encode([]any{it.options.Update, it.orphan, p.work.Spec.Executor})
	return h.Sum64()
}

// watched reports whether the inventory knows the objects of the work, or never will.
// Objects that cannot be watched are read every blindInterval.
func (p *pass) watched() bool {
	for _, it := range p.items {
		if it.err != nil {
			continue
		}
		switch p.agent.inventory.State(it.key.Resource) {
		case inventory.Starting:
			return false
		case inventory.Unwatched:
			p.requeue.retry(blindInterval)
		case inventory.Watched:
		}
	}
	return true
}

// quiet reports that nothing has happened since the last pass that left nothing to do:
// the usual case after our own writes, decided without decoding a manifest.
func (p *pass) quiet() bool {
	if p.record.quiet == 0 || p.record.quiet != p.work.Generation || !slices.Contains(p.work.Finalizers, names.FinalizerManifestWork) {
		return false
	}
	if p.applied == nil || !p.applied.DeletionTimestamp.IsZero() || p.applied.UID != p.record.owner {
		return false
	}
	return p.unchanged()
}

// unchanged reports whether every object is as it was left.
func (p *pass) unchanged() bool {
	for key, m := range p.record.marks {
		object, exists := p.agent.inventory.Object(key)
		if !exists || object.Revision != m.revision {
			return false
		}
		if left, reviewed := p.nextReview(m); reviewed {
			if left <= 0 {
				return false
			}
			p.requeue.recheck(left)
		}
		at, due := m.lookAt(object.ResourceVersion)
		if m.version == "" || !due {
			continue
		}
		left := at.Sub(p.now)
		if left <= 0 {
			return false
		}
		p.requeue.recheck(left)
	}
	return true
}

// settle remembers that nothing is left to do for this generation.
func (p *pass) settle() {
	p.record.seen = p.work.Generation
	if !p.requeue.unfinished {
		p.record.quiet = p.work.Generation
	}
	wanted := make(map[inventory.Key]bool, len(p.items))
	for _, it := range p.items {
		wanted[it.key] = it.mapped()
	}
	for key := range p.record.marks {
		if !wanted[key] {
			delete(p.record.marks, key)
			p.agent.slots.free(key)
		}
	}
}

// request is the request to apply a manifest.
func (p *pass) request(it *item, exists bool) strategy.Request {
	return strategy.Request{
		Resource: it.key.Resource, Manifest: it.Object, Owner: owner(p.applied), Owned: !it.orphan,
		Update:  it.options.Update,
		Missing: !exists && p.agent.inventory.State(it.key.Resource) == inventory.Watched,
		Settled: p.settledBefore(it),
	}
}
