package inventory

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// Interest is an object that a subscriber needs to know about.
type Interest struct {
	Key Key
	// Status is true if changes of the status matter too.
	Status bool
}

// State is how much is known about a resource.
type State int

const (
	// Starting means that the watch has not listed the resource yet.
	Starting State = iota
	// Watched means that everything is known.
	Watched
	// Unwatched means that the resource cannot be watched, for example because the
	// agent lacks the permission: its objects must be read.
	Unwatched
)

// Inventory knows the objects of the resources in use. Its methods may be called from
// any goroutine.
type Inventory struct {
	client metadata.Interface
	notify func(subscriber string)

	mu            sync.Mutex
	launch        func(*resource)
	resources     map[schema.GroupVersionResource]*resource
	subscriptions map[string][]Interest
}

// New returns an inventory that calls notify for each subscriber that a change concerns.
// notify must return at once.
func New(client metadata.Interface, notify func(subscriber string)) *Inventory {
	return &Inventory{
		client: client, notify: notify,
		resources: map[schema.GroupVersionResource]*resource{}, subscriptions: map[string][]Interest{},
	}
}

// Start watches what is subscribed to until ctx ends. It implements manager.Runnable.
func (i *Inventory) Start(ctx context.Context) error {
	var watches sync.WaitGroup
	launch := func(r *resource) {
		ctx, cancel := context.WithCancel(ctx)
		r.stop = cancel
		watches.Go(func() { r.watch(ctx, i.client) })
	}
	i.mu.Lock()
	i.launch = launch
	for _, r := range i.resources {
		launch(r)
	}
	i.mu.Unlock()
	<-ctx.Done()
	i.mu.Lock()
	i.launch = nil
	i.mu.Unlock()
	watches.Wait()
	return nil
}

// Subscribe replaces what a subscriber is interested in; nothing unsubscribes it.
func (i *Inventory) Subscribe(subscriber string, interests []Interest) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.subscriptions[subscriber]
	if slices.Equal(before, interests) {
		return
	}
	for _, interest := range interests {
		i.resourceOf(interest.Key.Resource).add(subscriber, interest)
	}
	for _, interest := range before {
		if !slices.Contains(interests, interest) {
			i.drop(subscriber, interest, interests)
		}
	}
	if len(interests) == 0 {
		delete(i.subscriptions, subscriber)
		return
	}
	i.subscriptions[subscriber] = interests
}

// drop ends a subscription, and the watch of a resource without any.
func (i *Inventory) drop(subscriber string, interest Interest, rest []Interest) {
	r, ok := i.resources[interest.Key.Resource]
	if !ok {
		return
	}
	if !slices.ContainsFunc(rest, func(other Interest) bool { return other.Key == interest.Key }) {
		r.remove(subscriber, interest.Key)
	}
	if len(r.subscribers) == 0 {
		if r.stop != nil {
			r.stop()
		}
		delete(i.resources, interest.Key.Resource)
	}
}

func (i *Inventory) resourceOf(gvr schema.GroupVersionResource) *resource {
	r, ok := i.resources[gvr]
	if !ok {
		r = newResource(i, gvr)
		i.resources[gvr] = r
		if i.launch != nil {
			i.launch(r)
		}
	}
	return r
}

// State returns how much is known about a resource. Nothing is known without a
// subscription.
func (i *Inventory) State(gvr schema.GroupVersionResource) State {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r, ok := i.resources[gvr]; ok {
		return r.state
	}
	return Unwatched
}

// Object returns what is known of an object. An object that is missing here does not
// exist if the resource is watched and the object was subscribed to, or had an owner,
// before it was created; else it may.
func (i *Inventory) Object(key Key) (Object, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r, ok := i.resources[key.Resource]
	if !ok {
		return Object{}, false
	}
	object, ok := r.objects[name{key.Namespace, key.Name}]
	return object, ok
}

// Observe records the object that a request returned, so that the event of that request
// is no news.
func (i *Inventory) Observe(key Key, object metav1.Object) Object {
	observed := Of(object)
	i.mu.Lock()
	defer i.mu.Unlock()
	r, ok := i.resources[key.Resource]
	if !ok {
		return observed
	}
	n := name{key.Namespace, key.Name}
	if known, ok := r.objects[n]; ok && older(observed.ResourceVersion, known.ResourceVersion) {
		return observed
	}
	if at, ok := r.deleted[n]; ok && older(observed.ResourceVersion, at) {
		return observed
	}
	r.objects[n] = observed
	return observed
}

// Forget records that an object of this UID does not exist.
func (i *Inventory) Forget(key Key, uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r, ok := i.resources[key.Resource]; ok {
		n := name{key.Namespace, key.Name}
		if r.objects[n].UID == uid {
			delete(r.objects, n)
		}
	}
}

// Owned returns the objects of watched resources that an AppliedManifestWork owns.
func (i *Inventory) Owned(owner types.UID) map[Key]Object {
	i.mu.Lock()
	defer i.mu.Unlock()
	owned := map[Key]Object{}
	for gvr, r := range i.resources {
		for n, object := range r.objects {
			if object.OwnedBy(owner) {
				owned[Key{gvr, n.namespace, n.name}] = object
			}
		}
	}
	return owned
}

// notifyAll calls notify for subscribers, which must be done without the lock.
func (i *Inventory) notifyAll(subscribers []string) {
	for _, subscriber := range subscribers {
		i.notify(subscriber)
	}
}
