package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
)

const (
	// mostWatchStart is how soon a work is looked at again whose objects are being
	// listed, even if the inventory does not say that they are.
	mostWatchStart = 30 * time.Second
	// blindInterval is how often objects are read that cannot be watched.
	blindInterval = 4 * time.Minute
)

// resolver finds the objects of the manifests on the cluster.
type resolver struct{ *scope }

// resolve decodes the manifests, and subscribes to their objects. While a kind is
// unknown it subscribes to CRDs as well.
func (r *resolver) resolve(context.Context) error {
	r.history = newHistory(r.work)
	manifests := manifest.Decode(r.work.ManifestWork)
	r.objects = make([]*object, len(manifests))
	unknown := false
	written := map[inventory.Key]bool{}
	for i, m := range manifests {
		o := &object{Manifest: m, inventory: r.agent.inventory, meta: m.Meta(nil), err: m.Err}
		r.objects[i] = o
		if m.Object == nil || m.Object.GetName() == "" {
			continue
		}
		mapping, err := r.mapping(m)
		if err != nil {
			unknown = unknown || apimeta.IsNoMatchError(err)
			o.err = err
			continue
		}
		r.complete(o, mapping)
		if o.err == nil && !unique(o.key, written) {
			o.err = manifest.Duplicate(o.meta)
		}
		if o.err == nil {
			r.interests = append(r.interests, inventory.Interest{Key: o.key, Status: o.observable()})
		}
	}
	if unknown {
		crds := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
		r.interests = append(r.interests, inventory.Interest{Key: inventory.Key{Resource: crds}})
	}
	r.subscribe(r.applied.recorded())
	return nil
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

func (r *resolver) mapping(m manifest.Manifest) (*apimeta.RESTMapping, error) {
	kind := m.Object.GroupVersionKind()
	mapping, err := r.agent.managed.mapper.RESTMapping(kind.GroupKind(), kind.Version)
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
func (r *resolver) complete(o *object, mapping *apimeta.RESTMapping) {
	o.meta = o.Meta(mapping)
	o.Object.SetNamespace(o.meta.Namespace)
	o.key = inventory.Key{Resource: mapping.Resource, Namespace: o.meta.Namespace, Name: o.meta.Name}
	id := manifest.Identifier(o.meta)
	o.options = manifest.OptionsFor(r.work.ManifestWork, id)
	o.orphan = manifest.Orphaned(r.work.ManifestWork, id)
	o.desired = r.digest(o)
}

// digest digests everything that decides what is applied of a manifest. The owner of
// the object is part of it through the record, which is the work's.
func (r *resolver) digest(o *object) uint64 {
	var h maphash.Hash
	h.SetSeed(r.works.records.seed)
	_, _ = h.Write(r.work.Spec.Workload.Manifests[o.Ordinal].Raw) // A hash never fails to write.
	_ = json.NewEncoder(&h).Encode([]any{o.options.Update, o.orphan, r.work.Spec.Executor})
	return h.Sum64()
}

// awaitWatches ends the pass while the inventory is still listing objects of the work: it
// says when it knows them. Objects that cannot be watched are read every blindInterval.
func (r *resolver) awaitWatches(context.Context) error {
	for _, o := range r.objects {
		if o.err != nil {
			continue
		}
		switch r.agent.inventory.State(o.key.Resource) {
		case inventory.Starting:
			r.requeue.retry(mostWatchStart)
			return errDone
		case inventory.Unwatched:
			r.requeue.retry(blindInterval)
		case inventory.Watched:
		}
	}
	return nil
}
