// Package manager installs add-ons on the clusters that the placements of their
// ClusterManagementAddOn choose, owns the add-ons that have one, and sets their
// configurations. It acts for every ClusterManagementAddOn that does not opt out with
// the annotation names.AnnotationAddOnLifecycle.
//
// It owns the owner reference of ManagedClusterAddOns, their status.configReferences
// and condition Configured, and the whole status of ClusterManagementAddOns. It reads
// PlacementDecisions and never chooses clusters itself; it never deletes an add-on that
// a user created, nor any before a placement is decided. It does not support
// AddOnTemplates, and reports that in the condition.
//
// Of its two reconcilers, Fleet reconciles a ClusterManagementAddOn and its clusters,
// AddOn one ManagedClusterAddOn; they interact through the status of the first. They
// are tested in pkg/addon.
package manager
