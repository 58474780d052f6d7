// Package addon is the hub's add-on manager: it gives add-ons that register with
// tokens their identities (tokeninfra) and installs, owns and configures add-ons
// for whoever wrote them (manager).
//
// It never runs an add-on and knows none by name. Its parts never call each
// other: they meet in the ManagedClusterAddOn.
package addon
