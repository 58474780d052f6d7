// Package addonpatch writes the fields of ManagedClusterAddOns that the add-on
// manager's controllers own. It never writes fields that are up to date, and overwrites no
// concurrent change but that of the same condition: who sets conditions watches them. A
// write to an add-on that is gone is not an error.
package addonpatch
