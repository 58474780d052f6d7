// Package addon owns the add-on registrations of one managed cluster: for every
// item of the status of every ManagedClusterAddOn it declares the driver and
// the subject on the hub, keeps a good credential in a Secret on the managed
// cluster, and tells in the add-on's conditions how that stands. It also judges
// an add-on's lease and tells its availability. One reconciler and one queue do
// this for all add-ons.
//
// The truth is in the API servers: a restart at any point goes on where the
// last process was, and what must not be forgotten of a request is stored
// before it is made. A Secret that is good is never replaced before its
// successor is there, and in a steady state nothing is written and nothing is
// polled.
//
// The package never deletes or overwrites a Secret that is not one of an add-on
// of this agent, never writes for an add-on that runs on another cluster, and
// touches of an add-on's status nothing but its registrations and its own
// conditions.
package addon
