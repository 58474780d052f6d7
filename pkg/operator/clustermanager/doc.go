// Package clustermanager is the operator of the hub: it turns a ClusterManager
// into the hub's CRDs, rights, admission policies and running controllers, keeps
// them as they should be, and takes them away again in the order in which
// nothing is left behind.
//
// It knows clusters only as what keeps a deletion waiting; registering them is
// the business of what it installs. Its invariant: nothing is applied before the
// ClusterManager has the finalizer, and the finalizer goes only when everything
// that was applied is gone.
package clustermanager
