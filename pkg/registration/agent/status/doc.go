// Package status owns what a managed cluster says about itself on the hub:
// joined, available, its version, resources and claims, and the state of its
// certificate. Everything is gathered first, then written in one patch of the
// status subresource, and only if it differs.
//
// It never touches the cluster's spec, labels or taints, says nothing while the
// hub does not accept the cluster or holds its clock for wrong, and runs in the
// manager of one hub connection while it reads the managed cluster through
// Sources.
package status
