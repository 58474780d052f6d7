package mint

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// accounts knows the UIDs of the ServiceAccounts in the target namespaces, by
// a watch of their metadata per namespace. Nothing else of the hub is watched.
type accounts struct {
	hub metadata.Getter
	// seen is called for each ServiceAccount that is there, lost of each that is gone.
	seen, lost func(t target, uid string)

	mu      sync.RWMutex
	wanted  map[string]*namespace
	changed chan struct{}
}

// namespace is one that is watched, or shall be.
type namespace struct {
	// pinned ones are in the configuration, others came with a request.
	pinned bool
	store  cache.Store
	synced func() bool
	stop   context.CancelFunc
	err    error
}

func newAccounts(hub metadata.Getter, seen, lost func(t target, uid string)) *accounts {
	return &accounts{
		hub: hub, seen: seen, lost: lost,
		wanted: map[string]*namespace{}, changed: make(chan struct{}, 1),
	}
}

// uid returns the UID of a ServiceAccount, if the watch knows it.
func (a *accounts) uid(t target) (string, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	n := a.wanted[t.namespace]
	if n == nil || n.synced == nil || !n.synced() {
		return "", false
	}
	object, ok, err := n.store.GetByKey(t.namespace + "/" + t.name)
	if !ok || err != nil {
		return "", false
	}
	account, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return "", false
	}
	return string(account.UID), true
}

// want has a namespace watched, from the next turn of run on.
func (a *accounts) want(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.wanted[name]; !ok {
		a.wanted[name] = &namespace{}
		a.signal()
	}
}

// pin makes names the namespaces that are watched whether they are needed or not.
func (a *accounts) pin(names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.wanted {
		n.pinned = false
	}
	for _, name := range names {
		if a.wanted[name] == nil {
			a.wanted[name] = &namespace{}
		}
		a.wanted[name].pinned = true
	}
	a.signal()
}

// release stops the watches that are neither pinned nor needed.
func (a *accounts) release(needed func(namespace string) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, n := range a.wanted {
		if n.pinned || needed(name) {
			continue
		}
		if n.stop != nil {
			n.stop()
		}
		delete(a.wanted, name)
	}
}

func (a *accounts) signal() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// run watches what is wanted until ctx ends.
func (a *accounts) run(ctx context.Context) {
	var watches sync.WaitGroup
	defer watches.Wait()
	for {
		a.start(ctx, &watches)
		select {
		case <-ctx.Done():
			return
		case <-a.changed:
		}
	}
}

func (a *accounts) start(ctx context.Context, watches *sync.WaitGroup) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, n := range a.wanted {
		if n.stop != nil {
			continue
		}
		var controller cache.Controller
		n.store, controller = cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: a.listWatch(name, n),
			ObjectType:    &metav1.PartialObjectMetadata{},
			Handler:       a.handler(),
			Transform:     strip,
		})
		n.synced = controller.HasSynced
		var own context.Context
		own, n.stop = context.WithCancel(ctx)
		watches.Go(func() { controller.RunWithContext(own) })
	}
}

func (a *accounts) listWatch(name string, n *namespace) cache.ListerWatcher {
	accounts := a.hub.Namespace(name)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := accounts.List(ctx, o)
			a.note(n, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := accounts.Watch(ctx, o)
			a.note(n, err)
			return w, err
		},
	}
}

// note remembers the last error of a watch, for its status.
func (a *accounts) note(n *namespace, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n.err = err
}

func (a *accounts) handler() cache.ResourceEventHandler {
	tell := func(hear func(target, string), object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if account, ok := object.(*metav1.PartialObjectMetadata); ok {
			hear(target{namespace: account.Namespace, name: account.Name}, string(account.UID))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell(a.seen, object) },
		UpdateFunc: func(_, object any) { tell(a.seen, object) },
		DeleteFunc: func(object any) { tell(a.lost, object) },
	}
}

// strip keeps of a ServiceAccount what identifies it.
func strip(object any) (any, error) {
	account, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: account.Namespace, Name: account.Name, UID: account.UID, ResourceVersion: account.ResourceVersion,
	}}, nil
}

// NamespaceStatus describes the watch of one target namespace.
type NamespaceStatus struct {
	Namespace string
	// Synced is set once all its ServiceAccounts are known.
	Synced bool
	// Err is why the last list, watch or TokenRequest was refused, nil if none was.
	Err error
}

func (a *accounts) status() []NamespaceStatus {
	a.mu.RLock()
	defer a.mu.RUnlock()
	all := make([]NamespaceStatus, 0, len(a.wanted))
	for name, n := range a.wanted {
		all = append(all, NamespaceStatus{Namespace: name, Synced: n.synced != nil && n.synced(), Err: n.err})
	}
	return all
}
