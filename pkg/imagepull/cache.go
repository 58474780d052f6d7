package imagepull

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/usage"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// CacheOptions limit the cache of the controllers' manager to what they read:
// pull secrets without their tokens, and little of ServiceAccounts and namespaces,
// or only what is in the namespaces that config names.
func CacheOptions(config Config) cache.Options {
	secrets := config.form().Cache()
	secrets.Transform = transform(func(s *corev1.Secret) error { strip(s); return content.Summarize(s) })
	objects := map[client.Object]cache.ByObject{
		&corev1.Secret{}: secrets,
		&corev1.ServiceAccount{}: {
			Transform: transform(func(a *corev1.ServiceAccount) error { strip(a); return nil }),
		},
	}
	options := cache.Options{ByObject: objects}
	if len(config.Namespaces) == 0 {
		objects[&corev1.Namespace{}] = cache.ByObject{
			Transform: transform(func(n *metav1.PartialObjectMetadata) error { strip(n); return nil }),
		}
	} else {
		options.DefaultNamespaces = map[string]cache.Config{}
	}
	for _, namespace := range config.Namespaces {
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	if config.OnlyUsed {
		maps.Copy(objects, usage.CacheObjects())
	}
	maps.Copy(objects, config.Lookup.CacheObjects())
	return options
}

// transform changes the objects of one type, and no others.
func transform[T any](change func(T) error) func(any) (any, error) {
	return func(object any) (any, error) {
		if o, ok := object.(T); ok {
			return object, change(o)
		}
		return object, nil
	}
}

// strip leaves out metadata that no decision needs. What others write into
// annotations can be large, and those of kubectl apply and of a legacy pull secret can
// hold a token.
func strip(object metav1.Object) {
	kept := map[string]string{}
	for _, key := range []string{
		names.AnnotationPullSecret, names.AnnotationPullSecretAccount, names.AnnotationPullSecretRefresh,
		names.AnnotationOpenShiftPullSecret, names.AnnotationOpenShiftAccount, names.AnnotationOpenShiftAcount,
		names.AnnotationOpenShiftBinding, names.AnnotationOpenShiftTokenSecret,
		corev1.ServiceAccountNameKey, corev1.ServiceAccountUIDKey,
	} {
		if value, ok := object.GetAnnotations()[key]; ok {
			kept[key] = value
		}
	}
	object.SetAnnotations(kept)
	object.SetManagedFields(nil)
}
