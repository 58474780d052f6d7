// Package sharedrole owns the two ClusterRoles that the RoleBindings in every
// cluster namespace refer to, and the controller that ensures they exist as long as
// there is a ManagedCluster. Their cluster label is empty: they belong to no
// cluster. It is tested in pkg/registration/hub.
package sharedrole
