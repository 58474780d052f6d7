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

// Config is what the issuer issues.
type Config struct {
	// Namespace holds the Secrets and the ConfigMap. Nothing is made before it
	// exists.
	Namespace string
	// Rules are how long certificates live and whom they are for.
	Rules Rules
	// CRDs name the CRDs whose conversion trusts the bundle.
	CRDs []string
	// Clock tells when something is due.
	Clock clock.PassiveClock
}

// Setup adds the issuer to mgr, whose cache holds the ConfigMap, the CRDs and
// the namespace. Each Secret is watched, without its content, by a cache of its
// own, because the right to watch is a right to one name.
func Setup(mgr ctrl.Manager, config Config) error {
	r := &Reconciler{config: config, client: mgr.GetClient(), uncached: mgr.GetAPIReader(), clock: config.Clock}
	builder := ctrl.NewControllerManagedBy(mgr).Named("webhook.servingcert").
		Watches(&corev1.Namespace{}, when(func(obj client.Object) bool { return obj.GetName() == config.Namespace })).
		Watches(&corev1.ConfigMap{}, when(func(obj client.Object) bool {
			return obj.GetNamespace() == config.Namespace && obj.GetName() == names.CABundleConfigMap
		})).
		Watches(&apiextensionsv1.CustomResourceDefinition{}, when(func(obj client.Object) bool {
			return slices.Contains(config.CRDs, obj.GetName())
		}))
	for _, name := range []string{names.SignerSecret, names.AddOnWebhookServingCertSecret} {
		secrets, err := secretCache(mgr, config.Namespace, name)
		if err != nil {
			return err
		}
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		builder = builder.WatchesRawSource(source.Kind(secrets, client.Object(meta), when(func(client.Object) bool { return true })))
	}
	return builder.Complete(r)
}

// when asks for a look when an object passes a test.
func when(concerns func(client.Object) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if !concerns(obj) {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "webhooks"}}}
	})
}

// secretCache is a cache of one Secret.
func secretCache(mgr ctrl.Manager, namespace, name string) (cache.Cache, error) {
	secrets, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform:     cache.TransformStripManagedFields(),
		DefaultNamespaces:    map[string]cache.Config{namespace: {}},
		DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", name),
	})
	if err != nil {
		return nil, fmt.Errorf("cache of the Secret %s: %w", name, err)
	}
	return secrets, mgr.Add(secrets)
}
