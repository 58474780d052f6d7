// Package addonpatch writes the fields of ManagedClusterAddOns that the add-on
// manager's controllers own. It never writes fields that are up to date, and never
// overwrites a concurrent change. A write to an add-on that is gone is not an error.
package addonpatch
