// Package addon is the hub's add-on manager: it creates the identities of add-ons that
// register with tokens (tokeninfra), and installs, owns and configures add-ons
// (manager).
//
// It never runs an add-on and depends on none. Its packages never call each other: they
// interact through the ManagedClusterAddOn.
package addon
