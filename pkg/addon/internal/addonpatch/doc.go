// Package addonpatch writes the parts of ManagedClusterAddOns that the add-on
// manager's controllers own. It never writes what is as wanted already, and
// never overwrites what somebody else wrote in the meantime. An add-on that went
// away in the meantime needs nothing written, which is no error.
package addonpatch
