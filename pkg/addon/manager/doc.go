// Package manager installs add-ons on the clusters that the placements of their
// ClusterManagementAddOn choose, owns the add-ons that have one, and sets their
// configurations. It acts for every ClusterManagementAddOn that does not opt out with
// the annotation names.AnnotationAddOnLifecycle.
//
// It owns the owner reference of ManagedClusterAddOns, their status.configReferences
// and conditions Configured and Progressing, and the whole status of
// ClusterManagementAddOns. It reads PlacementDecisions and ManifestWorks, and never
// chooses clusters nor deploys anything itself; it never deletes an add-on that a user
// created, nor any before a placement is decided.
//
// Of its two reconcilers, Fleet reconciles a ClusterManagementAddOn and its clusters,
// AddOn one ManagedClusterAddOn; they interact through the status of the first. In a
// rollout in steps, AddOn leaves an add-on the configurations that it has, and Fleet lets
// AddOn configure those whose turn it is: an add-on that was released wants what it has,
// so that nothing about a rollout is held in memory. They are tested in pkg/addon.
package manager
