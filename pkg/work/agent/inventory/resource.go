package inventory

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// name is a name in a namespace.
type name struct{ namespace, name string }

// subscription is the interest of one subscriber in one object.
type subscription struct {
	subscriber string
	status     bool
}

// resource is the watch of one resource, and the store of its reflector. The inventory's
// lock guards it.
type resource struct {
	inventory   *Inventory
	gvr         schema.GroupVersionResource
	stop        context.CancelFunc
	state       State
	objects     map[name]Object
	subscribers map[name][]subscription
	// deleted has the resource versions at which objects with a subscriber did not exist:
	// a request that read one of them earlier may return later.
	deleted map[name]string
}

// Interface guards: the reflector looks for the second one at run time.
var (
	_ cache.ReflectorStore    = (*resource)(nil)
	_ cache.TransformingStore = (*resource)(nil)
)

func newResource(inventory *Inventory, gvr schema.GroupVersionResource) *resource {
	return &resource{inventory: inventory, gvr: gvr, objects: map[name]Object{}, subscribers: map[name][]subscription{}, deleted: map[name]string{}}
}

// watch follows the resource until ctx ends.
func (r *resource) watch(ctx context.Context, client metadata.Interface) {
	objects := client.Resource(r.gvr)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := objects.List(ctx, options)
			r.failed(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := objects.Watch(ctx, options)
			r.failed(ctx, err)
			return events, err
		},
	}
	cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, client), &metav1.PartialObjectMetadata{}, r,
		cache.ReflectorOptions{Name: "work.inventory", TypeDescription: r.gvr.String()},
	).RunWithContext(ctx)
}

// failed records that the resource cannot be watched. A resource that was listed keeps
// its objects while its API server is away.
func (r *resource) failed(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsInvalid(err) {
		return
	}
	i := r.inventory
	i.mu.Lock()
	gone := apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
	if r.state == Unwatched || r.state == Watched && !gone {
		i.mu.Unlock()
		return
	}
	r.state = Unwatched
	clear(r.objects)
	all := r.all()
	i.mu.Unlock()
	i.notifyAll(all)
}

// add subscribes to an object.
func (r *resource) add(subscriber string, interest Interest) {
	n := name{interest.Key.Namespace, interest.Key.Name}
	subscribers := r.subscribers[n]
	if at := slices.IndexFunc(subscribers, func(s subscription) bool { return s.subscriber == subscriber }); at >= 0 {
		subscribers[at].status = interest.Status
		return
	}
	r.subscribers[n] = append(subscribers, subscription{subscriber, interest.Status})
}

// remove ends a subscription. What is known of an object that has no subscriber any more is
// dropped.
func (r *resource) remove(subscriber string, key Key) {
	n := name{key.Namespace, key.Name}
	r.subscribers[n] = slices.DeleteFunc(r.subscribers[n], func(s subscription) bool { return s.subscriber == subscriber })
	if len(r.subscribers[n]) > 0 {
		return
	}
	delete(r.subscribers, n)
	delete(r.deleted, n)
	if len(r.objects[n].Owners) == 0 {
		delete(r.objects, n)
	}
}

// all returns every subscriber.
func (r *resource) all() []string {
	seen := map[string]bool{}
	for _, subscribers := range r.subscribers {
		for _, s := range subscribers {
			seen[s.subscriber] = true
		}
	}
	all := make([]string, 0, len(seen))
	for subscriber := range seen {
		all = append(all, subscriber)
	}
	return all
}

// Transformer implements cache.TransformingStore: what is not kept is dropped before a
// list is complete.
func (r *resource) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if o, ok := object.(*metav1.PartialObjectMetadata); ok {
			o.ManagedFields = nil
		}
		return object, nil
	}
}

// Add implements cache.ReflectorStore.
func (r *resource) Add(object any) error { return r.Update(object) }

// Update implements cache.ReflectorStore.
func (r *resource) Update(object any) error {
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	found := Of(o)
	r.inventory.mu.Lock()
	concerned := r.set(name{o.Namespace, o.Name}, found)
	r.inventory.mu.Unlock()
	r.inventory.notifyAll(concerned)
	return nil
}

// set records an object, and returns the subscribers that its change concerns.
func (r *resource) set(n name, found Object) []string {
	subscribers := append(slices.Clone(r.subscribers[n]), r.subscribers[name{}]...)
	if len(r.subscribers[n]) == 0 && len(found.Owners) == 0 {
		delete(r.objects, n)
		return namesOf(subscribers)
	}
	before, had := r.objects[n]
	if had && (before.ResourceVersion == found.ResourceVersion || older(found.ResourceVersion, before.ResourceVersion)) {
		return nil
	}
	r.objects[n] = found
	delete(r.deleted, n)
	if had && before.Revision == found.Revision { // At most the status changed.
		subscribers = slices.DeleteFunc(subscribers, func(s subscription) bool { return !s.status })
	}
	return namesOf(subscribers)
}

func namesOf(subscribers []subscription) []string {
	names := make([]string, len(subscribers))
	for i, s := range subscribers {
		names[i] = s.subscriber
	}
	return names
}

// Delete implements cache.ReflectorStore.
func (r *resource) Delete(object any) error {
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	n := name{o.Namespace, o.Name}
	r.inventory.mu.Lock()
	var names []string
	if known, ok := r.objects[n]; !ok || known.UID == o.UID {
		names = r.forget(n, o.ResourceVersion)
	}
	r.inventory.mu.Unlock()
	r.inventory.notifyAll(names)
	return nil
}

// forget records that an object does not exist at a version of the resource, and returns
// the subscribers.
func (r *resource) forget(n name, version string) []string {
	delete(r.objects, n)
	if len(r.subscribers[n]) > 0 {
		r.deleted[n] = version
	}
	return namesOf(r.subscribers[n])
}

// Replace implements cache.ReflectorStore.
func (r *resource) Replace(list []any, version string) error {
	i := r.inventory
	i.mu.Lock()
	listed := make(map[name]bool, len(r.objects))
	var names []string
	for _, object := range list {
		o, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			continue
		}
		n := name{o.Namespace, o.Name}
		listed[n] = true
		names = append(names, r.set(n, Of(o))...)
	}
	for n, known := range r.objects {
		// What a request returned after the list was made is newer than the list.
		if !listed[n] && !older(version, known.ResourceVersion) {
			names = append(names, r.forget(n, version)...)
		}
	}
	for n := range r.subscribers {
		if _, exists := r.objects[n]; !exists {
			r.deleted[n] = version
		}
	}
	if r.state != Watched {
		r.state = Watched
		names = r.all()
	}
	i.mu.Unlock()
	slices.Sort(names)
	i.notifyAll(slices.Compact(names))
	return nil
}

// Resync implements cache.ReflectorStore.
func (r *resource) Resync() error { return nil }
