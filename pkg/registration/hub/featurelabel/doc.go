// Package featurelabel tells on a ManagedCluster, by labels that placements can
// select on, which add-ons the cluster has and whether they work, and calls the
// state of all add-ons of a cluster unknown when that of the cluster is. It
// reads add-ons and never makes or removes one.
package featurelabel
