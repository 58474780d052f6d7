// Package addon is the hub's add-on manager: it creates the identities of add-ons that
// register with tokens (tokeninfra), installs, owns and configures add-ons (manager), and
// deploys those that are made from AddOnTemplates (template).
//
// Commands read and change add-ons with the packages inventory, cleanup, driverswitch,
// permissions and rotation.
//
// It never runs an add-on and depends on none. Its controllers never call each other: they
// interact through the ManagedClusterAddOn.
package addon
