// Package acceptance creates the resources of a cluster that the hub accepts,
// removes the access of one that is denied, and detaches one that is deleted. It
// owns the cluster namespace, the cluster's RBAC, the creation of its lease, the
// finalizer of registration, and the conditions HubAcceptedManagedCluster and
// HubApprovedJoin, which are equal.
//
// Everything an agent needs exists before the condition reports that the cluster
// is accepted, because agents wait for it. The finalizers are the first write, so
// that detaching finds the resources of an interrupted acceptance too. Accepting a
// cluster takes eight writes; reconciling it again takes none:
//
//  1. the finalizers, of registration and of garbage collection in one patch
//  2. the namespace
//  3. the ClusterRole
//  4. the ClusterRoleBinding
//  5. the RoleBinding for registration
//  6. the RoleBinding for work
//  7. the lease
//  8. the conditions, accepted and clock-synced in one patch: the hub has just
//     written the lease that OCM's clock controller would compare with its clock
//
// Differences to OCM, all stricter:
//   - A denied cluster loses its access at once, even while ManifestWorks protect
//     the RoleBinding for work with a finalizer. It gets that binding back only
//     while it is being deleted and has ManifestWorks to finish.
//   - A cluster that is denied during its acceptance is cleaned up like one that
//     was accepted.
//   - Bindings are for the one agent that package record names, not for the
//     cluster's group. Steps 3 to 6 wait until the CSR of that agent is approved.
//   - A cluster whose driver grants its identity outside the hub is bound to the
//     subjects of the driver's plan. Acceptance does not wait for that grant, which
//     package grant owns.
//   - A name that would give an agent access to a namespace of Kubernetes or OCM is
//     rejected.
//   - A transient error does not revoke the acceptance of a cluster.
//   - A denial from before automatic approval was enabled persists.
//
// The package never decides whether a user may accept a cluster; admission
// does (docs/reference/registration-hub.md). The namespace of a cluster is never deleted.
// Its tests need other controllers of the hub and are in pkg/registration/hub.
package acceptance
