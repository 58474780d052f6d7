// Package drivertest is the conformance suite of registration drivers: what the agent
// relies on with every driver. Every implementation of driver.Agent and driver.AddOn
// runs its part against a real API server, in a test of its own package.
package drivertest
