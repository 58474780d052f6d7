// Package driverswitch owns the change of the driver that the add-ons of a cluster register
// with: the field of the Klusterlet, the agent's flags for it, and which registrations
// still lack a credential of that driver.
//
// It writes nothing: package agent of install changes the Klusterlet, and the agent
// registers the add-ons.
package driverswitch
