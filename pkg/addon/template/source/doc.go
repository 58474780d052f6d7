// Package source reads what an add-on is made from: the AddOnTemplate and the
// AddOnDeploymentConfig that its status names, and how the template registers it. It
// never writes.
package source
