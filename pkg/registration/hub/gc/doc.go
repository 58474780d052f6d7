// Package gc deletes the resources in the namespace of a cluster that is being
// detached, kind by kind in the given order (add-ons before ManifestWorks) and within
// a kind by cleanup priority. It owns the condition Deleting and the finalizer of
// resource cleanup, which acceptance sets together with its own. It never deletes
// the namespace.
//
// Objects with a finalizer of the agent wait for the agent without a limit, unless
// the ManagedCluster declares the agent gone: by an administrator
// (names.AnnotationForceDetach), or by the cluster itself when it detached
// (names.AnnotationLeft). Then the controller removes these finalizers and reports in
// an event which objects remain on the managed cluster. The package is tested in
// pkg/registration/hub.
package gc
