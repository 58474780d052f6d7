// Package duplicate reports a managed cluster that joined the hub under several
// names: each of its accepted ManagedClusters names the others in the condition
// ClusterIDConflict. A cluster is known by the id that its agent writes into an
// annotation (names.AnnotationClusterID) when it creates the ManagedCluster. An
// agent can claim any id, so nothing is decided by it, and a cluster without one
// is never reported.
package duplicate
