package names

// Shared ClusterRoles that every cluster's RoleBindings refer to.
// See docs/reference/wire-contract.md#shared-roles.
const (
	ClusterRoleRegistration = "open-cluster-management:managedcluster:registration"
	ClusterRoleWork         = "open-cluster-management:managedcluster:work"
)

// SharedClusterRoles returns both shared ClusterRoles.
func SharedClusterRoles() []string { return []string{ClusterRoleRegistration, ClusterRoleWork} }

// ManagedClusterClusterRole is the ClusterRole, and its binding, that hold what
// the agent of a cluster may do outside its namespace.
// See docs/reference/wire-contract.md#cluster-role.
func ManagedClusterClusterRole(cluster string) string {
	return "open-cluster-management:managedcluster:" + cluster
}

// RegistrationRoleBinding binds ClusterRoleRegistration in a cluster namespace.
func RegistrationRoleBinding(cluster string) string {
	return ManagedClusterClusterRole(cluster) + ":registration"
}

// WorkRoleBinding binds ClusterRoleWork in a cluster namespace.
func WorkRoleBinding(cluster string) string { return ManagedClusterClusterRole(cluster) + ":work" }

// RegisterGroup is the virtual API group of the permissions that guard
// registration: it exists in RBAC rules and access reviews only.
const RegisterGroup = "register.open-cluster-management.io"

// Resources and subresources of RegisterGroup.
const (
	// ResourceAccept with verb update lets a user set hubAcceptsClient to true.
	// See docs/reference/wire-contract.md#accept-right.
	ResourceAccept = "managedclusters/accept"
	// ResourceClientCertificates with verb renew lets an agent renew its certificate.
	// See docs/reference/wire-contract.md#csr-renewal-approval.
	ResourceClientCertificates = "managedclusters/clientcertificates"
)

// HubRegistrationRole is the name of the Roles and the ClusterRole of a ClusterManager's
// registration controller.
func HubRegistrationRole(clusterManager string) string {
	return "open-cluster-management:" + clusterManager + "-registration:controller"
}
