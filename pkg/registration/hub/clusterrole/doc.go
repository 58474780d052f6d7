// Package clusterrole keeps the ClusterRoles that all clusters share while
// there is a ManagedCluster, repairs them, and deletes them with the last one.
// What they allow is defined in internal/sharedrole.
package clusterrole
