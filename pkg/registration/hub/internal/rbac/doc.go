// Package rbac applies the roles and bindings of a cluster's agent on the hub: small
// typed objects of known shape, compared field by field with the cache, because
// acceptance handles thousands of them. An object that is up to date is not written.
// The caller defines the rules. The package is tested in pkg/registration/hub.
package rbac
