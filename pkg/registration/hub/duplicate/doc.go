// Package duplicate reports a managed cluster that joined the hub under several
// names: each of its accepted ManagedClusters names the others in the condition
// ClusterIDConflict. The agent writes the id of the cluster into an annotation
// (names.AnnotationClusterID) when it creates the ManagedCluster. Because an agent
// can write any id, no decision depends on it, and a cluster without one is never
// reported. The package is tested in pkg/registration/hub.
package duplicate
