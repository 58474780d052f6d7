package publish

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// watch is one open watch of the published ConfigMap: it saves asking, and reports
// at once of a change. It is no part of a manager's cache, because a hub that
// does not allow it must not keep a manager from starting.
type watch struct {
	informer cache.Informer
	reader   client.Reader
	key      client.ObjectKey
	// changed has an entry while there is news.
	changed chan struct{}
	ended   chan struct{}
}

// watch starts a watch that runs until ctx ends. If the hub does not allow it, watch
// retries at growing intervals.
func (p *place) watch(ctx context.Context) (*watch, error) {
	watched, err := cache.New(p.config, cache.Options{
		HTTPClient: p.http, Scheme: p.client.Scheme(), Mapper: p.client.RESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		// The cache asks for the namespace alone because the selector names it.
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
			Field: fields.SelectorFromSet(fields.Set{"metadata.namespace": p.cluster, "metadata.name": names.IssuerConfigMap}),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to watch the hub: %w", err)
	}
	w := &watch{reader: watched, key: p.key(), changed: make(chan struct{}, 1), ended: make(chan struct{})}
	if w.informer, err = watched.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("watch the hub: %w", err)
	}
	ring := func(any) { w.ring() }
	if _, err := w.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: ring, UpdateFunc: func(_, after any) { ring(after) }, DeleteFunc: ring,
	}); err != nil {
		return nil, fmt.Errorf("watch the hub: %w", err)
	}
	go func() { // Ends with ctx, and wait waits for that.
		defer close(w.ended)
		_ = watched.Start(ctx)
	}()
	return w, nil
}

func (w *watch) wait() { <-w.ended }

func (w *watch) ring() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// state returns what the watch saw last, nil for nothing; not known says that it
// has not seen anything yet.
func (w *watch) state(ctx context.Context) (m *corev1.ConfigMap, known bool) {
	if !w.informer.HasSynced() {
		return nil, false
	}
	m = &corev1.ConfigMap{}
	err := w.reader.Get(ctx, w.key, m)
	switch {
	case err == nil:
		return m, true
	case apierrors.IsNotFound(err):
		return nil, true
	}
	return nil, false
}
