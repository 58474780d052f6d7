// Package gc empties the namespace of a cluster that is being detached, kind by
// kind in the order given (add-ons before works) and within a kind by cleanup
// priority. It owns the condition Deleting and the finalizer of
// resource cleanup, which acceptance sets together with its own. The namespace
// itself stays.
//
// What an agent has to clean up first waits for the agent, for ever if need be,
// unless the ManagedCluster says that the agent is gone: an administrator
// (names.AnnotationForceDetach), or the cluster itself when it left
// (names.AnnotationLeft). Then the finalizers that wait for an agent are
// removed, and an event says what was left on the managed cluster.
package gc
