package extauthz

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/jwks/published"
)

// CacheOptions returns what the manager's cache holds for a role whose keys
// come from the hub.
func CacheOptions() cache.Options {
	return cache.Options{ByObject: published.CacheOptions()}
}

// publications adds what brings the keys that clusters publish.
func (r *role) publications(mgr manager.Manager) error {
	return (&published.Reconciler{Client: mgr.GetCache(), Store: r.store}).SetupWithManager(mgr)
}
