package extauthz

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/exchange"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/jwks/published"
)

// CacheOptions returns what the manager's cache holds for a role whose keys
// come from the hub.
func CacheOptions() cache.Options {
	return cache.Options{ByObject: published.CacheOptions()}
}

// publications adds what brings the keys that clusters publish.
func (r *role) publications(mgr manager.Manager) error {
	reconciler := &published.Reconciler{
		Client: mgr.GetCache(),
		Store:  departing{Store: r.store, exchanger: r.exchanger},
	}
	return reconciler.SetupWithManager(mgr)
}

// departing is the store of keys, and has the tokens of a cluster go with its keys.
type departing struct {
	*jwks.Store

	exchanger *exchange.Exchanger
}

// Withdraw implements published.Store.
func (d departing) Withdraw(cluster string) {
	d.Store.Withdraw(cluster)
	d.exchanger.EvictCluster(cluster)
}
