// Package rbac applies the roles and bindings that a cluster's agent gets on
// the hub: small typed objects of known shape, compared field by field with
// what a cache holds, because acceptance handles thousands of them. An object
// that is as wanted is not written. What a role allows is the caller's.
package rbac
