// Package hub deletes finished ManifestWorks on the hub: those that say in
// spec.deleteOption.ttlSecondsAfterFinished how long they stay after their
// condition Complete became True. It is behind OCM's feature gate
// CleanUpCompletedManifestWork.
//
// It never decides when a work is complete, which its condition rules say to the
// work agent, and deletes no work that changed since it was read. What happens to
// the applied objects is up to the work's delete option and its agent.
package hub
