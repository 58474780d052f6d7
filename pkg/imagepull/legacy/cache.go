package legacy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// typeOf selects the Secrets of a type at the API server.
func typeOf(t corev1.SecretType) fields.Selector {
	return fields.OneTermEqualSelector("type", string(t))
}

// NewCache returns a cache with the metadata of token Secrets, in all namespaces or
// in some, and adds it to mgr. The cache of the manager has other Secrets.
func NewCache(mgr ctrl.Manager, namespaces ...string) (cache.Cache, error) {
	var some map[string]cache.Config // All, while it is nil.
	if len(namespaces) > 0 {
		some = map[string]cache.Config{}
	}
	for _, namespace := range namespaces {
		some[namespace] = cache.Config{}
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: some,
		ByObject: map[client.Object]cache.ByObject{
			metadata("", ""): {Field: typeOf(corev1.SecretTypeServiceAccountToken), Transform: trim},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to watch token Secrets: %w", err)
	}
	return c, mgr.Add(c)
}

// trim leaves out metadata that no decision needs; that of kubectl apply can hold a
// token.
func trim(object any) (any, error) {
	secret, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := map[string]string{}
	for _, key := range []string{names.AnnotationCreatedBy, corev1.ServiceAccountNameKey} {
		if value, ok := secret.Annotations[key]; ok {
			kept[key] = value
		}
	}
	secret.Annotations, secret.ManagedFields = kept, nil
	return secret, nil
}
