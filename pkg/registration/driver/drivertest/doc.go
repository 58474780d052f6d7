// Package drivertest is the conformance suite of registration drivers: what
// the agent relies on, whatever the driver. Every implementation of
// driver.Agent, and every one of driver.AddOn, runs its part against a real API
// server, in a test of its own package.
package drivertest
