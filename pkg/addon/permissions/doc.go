// Package permissions owns the RBAC manifests that an add-on starts from on the hub: its
// subjects under both drivers, the rules that a user writes in short, and their rendering.
//
// It reads ManagedClusterAddOns and applies nothing.
package permissions
