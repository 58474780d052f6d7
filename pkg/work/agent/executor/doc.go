// Package executor decides whether the ServiceAccount that a ManifestWork names as its
// executor may do to an object what the work agent is about to do. It owns the access
// reviews, and the check that RBAC objects grant nothing that the executor does not have.
//
// It never writes, and never acts with permissions of the executor but in dry runs.
//
// Its invariant: an error means that the object must not be written.
package executor
