// Package addon owns the add-on registrations of one managed cluster. For each
// registration in the status of each ManagedClusterAddOn it sets the driver and the
// subject in status, stores a valid credential in a Secret on the managed cluster,
// and reports its state in the add-on's conditions. It also reports the availability
// of an add-on from its lease. One reconciler and one queue serve all add-ons.
//
// All state is in the API servers: the data of a request is stored before the request
// is created, so that a restarted process continues it. A valid Secret is replaced
// only by a new credential. In a steady state the package writes and polls nothing.
//
// The package never deletes or overwrites a Secret that does not belong to an add-on
// of this agent, never writes for an add-on that runs on another cluster, and changes
// only the registrations and its own conditions in the status of an add-on.
package addon
