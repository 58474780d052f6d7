package servingcert

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Config describes what the issuer issues.
type Config struct {
	// Name is the name of the controller.
	Name string
	// Namespace holds the Secrets and the ConfigMap.
	Namespace string
	// Objects are their names.
	Objects Objects
	// After is an object of a kind in mgr's cache: nothing is issued before it exists.
	// If it is in Namespace, it owns what is issued.
	After client.Object
	// Rules are the lifetimes of certificates and their DNS names.
	Rules Rules
	// CRDs name the CRDs whose conversion trusts the bundle.
	CRDs []string
	// Clock is the clock for due times.
	Clock clock.PassiveClock
}

// Objects are the names of what the issuer writes.
type Objects struct {
	// Signer and Serving are the Secrets with the CA and with the certificate.
	Signer, Serving string
	// Bundle is the ConfigMap with the CAs to trust.
	Bundle string
}

// WebhookObjects are the objects of the hub's webhooks.
func WebhookObjects() Objects {
	return Objects{
		Signer: names.SignerSecret, Serving: names.AddOnWebhookServingCertSecret, Bundle: names.CABundleConfigMap,
	}
}

// Setup adds the issuer to mgr, whose cache has the CRDs and the kind of After. Each
// object is watched, without its content, by a cache of its own, because RBAC allows
// the watch of one name.
func Setup(mgr ctrl.Manager, config Config) error {
	r := &Reconciler{config: config, client: mgr.GetClient(), uncached: mgr.GetAPIReader(), clock: config.Clock}
	after := client.ObjectKeyFromObject(config.After)
	builder := ctrl.NewControllerManagedBy(mgr).Named(config.Name).
		Watches(config.After, when(func(obj client.Object) bool { return client.ObjectKeyFromObject(obj) == after }))
	if len(config.CRDs) > 0 {
		builder = builder.Watches(&apiextensionsv1.CustomResourceDefinition{}, when(func(obj client.Object) bool {
			return slices.Contains(config.CRDs, obj.GetName())
		}))
	}
	for _, written := range []struct{ kind, name string }{
		{"Secret", config.Objects.Signer}, {"Secret", config.Objects.Serving}, {"ConfigMap", config.Objects.Bundle},
	} {
		one, err := cacheOfOne(mgr, config.Namespace, written.name)
		if err != nil {
			return err
		}
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(written.kind))
		builder = builder.WatchesRawSource(source.Kind(one, client.Object(meta), when(func(client.Object) bool { return true })))
	}
	return builder.Complete(r)
}

// when requests a reconcile for objects that pass a test.
func when(concerns func(client.Object) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if !concerns(obj) {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "webhooks"}}}
	})
}

// cacheOfOne is a cache of the objects with one name.
func cacheOfOne(mgr ctrl.Manager, namespace, name string) (cache.Cache, error) {
	one, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform:     cache.TransformStripManagedFields(),
		DefaultNamespaces:    map[string]cache.Config{namespace: {}},
		DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", name),
	})
	if err != nil {
		return nil, fmt.Errorf("cache of %s: %w", name, err)
	}
	return one, mgr.Add(one)
}
