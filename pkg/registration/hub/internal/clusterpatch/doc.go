// Package clusterpatch writes the parts of a ManagedCluster that the hub's
// controllers share with each other, with users and with the cluster's agent:
// conditions, finalizers and taints.
//
// Each of them is a list that has more than one writer, so a patch carries the
// resource version that was read and only its list: a writer with stale data gets
// a conflict and retries, and never removes or takes ownership of an entry of
// another writer. (With server-side apply, one writer would own the list of
// conditions.) A patch that would change nothing is not sent.
// The package is tested in pkg/registration/hub.
package clusterpatch
