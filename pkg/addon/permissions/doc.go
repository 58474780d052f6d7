// Package permissions owns the RBAC manifests that an add-on starts from on the hub: its
// subjects under both drivers, the short form of rules, and the rendering.
//
// It reads ManagedClusterAddOns and applies nothing.
package permissions
