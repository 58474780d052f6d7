// Package manager installs add-ons where the placements of their
// ClusterManagementAddOn say, owns the add-ons that have one, and tells each
// which configurations it has. It acts for every
// ClusterManagementAddOn that does not opt out by the annotation
// names.AnnotationAddOnLifecycle.
//
// It owns the owner reference of ManagedClusterAddOns, status.configReferences
// and the condition Configured there, and the whole status of
// ClusterManagementAddOns. It reads PlacementDecisions and decides nothing about
// clusters itself; it never deletes an add-on that somebody made by hand, and
// none while a placement has not been decided; and it knows no AddOnTemplates,
// which it says in the condition.
//
// Two reconcilers share the work. Fleet looks at a ClusterManagementAddOn and
// the clusters that should have it, AddOn at one ManagedClusterAddOn; they meet
// in the status of the first.
package manager
