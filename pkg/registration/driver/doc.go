// Package driver owns the contracts between registration and the drivers that give a
// cluster or an add-on an identity on the hub: Agent on the managed cluster, Hub and
// Granter on the hub, AddOn for the registrations of an add-on. A driver implements
// those that apply to it, in a package below this one.
//
// The package performs no I/O. An unknown auth type is an error that names the
// valid ones: it never falls back to another driver.
//
// Its contracts are tested with every driver, by package drivertest.
package driver
