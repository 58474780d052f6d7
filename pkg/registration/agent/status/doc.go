// Package status owns the status that a managed cluster reports to the hub: joined,
// available, version, resources, claims and the condition of its credential. It
// gathers everything first, and writes it in one patch of the status subresource if it
// differs.
//
// It never changes the cluster's spec, labels or taints, and writes nothing while the
// hub does not accept the cluster or reports its clock out of sync. It runs in the
// manager of one hub connection, and reads the managed cluster through Sources.
package status
