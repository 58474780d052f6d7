// Package driver owns the contracts between registration and the ways in which
// a cluster or an add-on can be given an identity on the hub: Agent for the
// managed cluster's side, Hub and Granter for the hub's side, AddOn for the
// registrations of an add-on. A driver implements what it has and nothing else;
// its package lies below this one.
//
// The package performs no I/O. An unknown auth type is an error that names the
// valid ones: it never falls back to another driver.
package driver
