// Package sharedrole owns the two ClusterRoles that the RoleBindings in every
// cluster namespace refer to. They exist as long as there is a
// ManagedCluster. Their cluster label is empty: they belong to no cluster.
package sharedrole
