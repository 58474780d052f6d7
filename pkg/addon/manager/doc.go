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
// AddOn one ManagedClusterAddOn; they interact through the status of the first. During
// a gradual rollout, AddOn keeps an add-on's current configurations, and Fleet lets
// AddOn configure the add-ons that are due: a released add-on keeps its configurations
// as the desired ones, so that no state of a rollout is in memory. They are tested in
// pkg/addon.
package manager
