package extauthz

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// configMapWatch follows the configuration on the hub, by a watch of that one
// ConfigMap, for which the right on its name suffices. A hub that has none
// allows nothing.
type configMapWatch struct {
	client  corev1client.CoreV1Interface
	source  Source
	changed func(*config.Config, error)
	// seen is the text that came in last.
	seen  string
	begun bool
}

func newConfigMapWatch(hub *rest.Config, source Source, changed func(*config.Config, error)) (*configMapWatch, error) {
	client, err := corev1client.NewForConfig(hub)
	if err != nil {
		return nil, fmt.Errorf("watch the configuration on the hub: %w", err)
	}
	source.Options.Hub, source.Options.File = true, "ConfigMap "+source.ConfigMap.String()
	return &configMapWatch{client: client, source: source, changed: changed}, nil
}

// run follows the ConfigMap until ctx ends.
func (w *configMapWatch) run(ctx context.Context) error {
	name := w.source.ConfigMap
	texts := make(chan string)
	tell := func(object any) {
		text := ""
		if m, ok := object.(*corev1.ConfigMap); ok {
			text = m.Data[names.TokenAuthorizerConfigKey]
		}
		select {
		case texts <- text:
		case <-ctx.Done():
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(w.client.RESTClient(), "configmaps", name.Namespace,
			fields.OneTermEqualSelector("metadata.name", name.Name)),
		ObjectType: &corev1.ConfigMap{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    tell,
			UpdateFunc: func(_, object any) { tell(object) },
			DeleteFunc: func(any) { tell(nil) },
		},
	})
	var informer sync.WaitGroup
	defer informer.Wait()
	informer.Go(func() { controller.RunWithContext(ctx) })
	listed := make(chan struct{})
	informer.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
			close(listed)
		}
	})
	for {
		select {
		case <-ctx.Done():
			return nil
		case text := <-texts:
			w.take(text)
		case <-listed:
			listed = nil
			if !w.begun {
				w.take("")
			}
		}
	}
}

// take takes a text over that differs from the last one.
func (w *configMapWatch) take(text string) {
	if w.begun && text == w.seen {
		return
	}
	w.begun, w.seen = true, text
	w.changed(config.Parse([]byte(text), w.source.Options))
}
