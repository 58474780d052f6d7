// Package featurelabel labels a ManagedCluster with its add-ons and their
// availability, for placements to select on, and sets the availability of all
// add-ons of a cluster to unknown when that of the cluster is unknown. It never
// creates or removes an add-on. It is tested in pkg/registration/hub.
package featurelabel
