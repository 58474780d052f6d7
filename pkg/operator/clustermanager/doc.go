// Package clustermanager is the operator of the hub: it turns a ClusterManager into the
// hub's CRDs, rights, admission policies and running controllers, repairs drift, and
// removes them in an order that leaves nothing behind.
//
// It knows clusters only as objects that block a deletion; the components that it
// installs register them. Its invariant: the operator applies nothing before the
// ClusterManager has the finalizer, and removes the finalizer only after everything
// that was applied is gone.
package clustermanager
