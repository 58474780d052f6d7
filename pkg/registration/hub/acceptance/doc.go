// Package acceptance gives a cluster that the hub accepts its place on the hub,
// takes it away from one that is denied, and detaches one that is deleted. It
// owns the cluster namespace, the cluster's RBAC, the making of its lease, the
// finalizer of registration, and the conditions HubAcceptedManagedCluster and
// HubApprovedJoin, which say the same.
//
// Everything an agent needs exists before the condition says that the cluster
// is accepted, because agents start on it. The finalizers are the first write:
// whatever else was made, by a pass that was cut short as well, is found by
// them. A cluster costs eight writes to accept and none to look at again:
//
//  1. the finalizers, of registration and of garbage collection in one patch
//  2. the namespace
//  3. the ClusterRole
//  4. the ClusterRoleBinding
//  5. the RoleBinding for registration
//  6. the RoleBinding for work
//  7. the lease
//  8. the conditions, accepted and clock-synced in one patch: the hub itself
//     has just written the lease, which is what upstream's clock controller
//     would go by a moment later
//
// Differences to upstream, all on the safe side: a denied cluster loses its
// access at once, also when manifest works hold the RoleBinding for work by a
// finalizer, and gets that binding back only while it is being deleted and has
// works to finish; a cluster that is turned down in the middle of being accepted is
// cleaned up like one that was accepted; rights are those of the one agent that
// package record names, and not of the cluster's group; where it is not known
// yet steps 3 to 6 come when its request is approved; a cluster whose driver grants
// its identity outside the hub has the subjects of the driver's plan instead, and
// whether that grant succeeds, which package grant sees to, has no part in its
// acceptance; a name that would give an agent access
// to a namespace of Kubernetes or of OCM itself is refused; an error that will
// pass by itself does not take acceptance back from a cluster that has it; what
// an admin denied before automatic approval was switched on stays denied.
//
// The package never decides whether a person may accept a cluster; admission
// does (docs/reference/registration-hub.md). The namespace of a cluster is never deleted.
package acceptance
