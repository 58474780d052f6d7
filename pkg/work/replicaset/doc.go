// Package replicaset makes the ManifestWorks of a ManifestWorkReplicaSet: one in the
// namespace of every cluster that the PlacementDecisions of its placements name. It is
// behind OCM's feature gate ManifestWorkReplicaSet.
//
// It decides nothing about placement, and neither writes nor deletes a ManifestWork of
// that name without the label that names its ManifestWorkReplicaSet. A placement
// without PlacementDecisions has not been decided: what it chose before stays. Who may
// write a ManifestWorkReplicaSet is up to admission.
package replicaset
