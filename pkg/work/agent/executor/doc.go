// Package executor decides whether the ServiceAccount that a ManifestWork names as its
// executor may do to an object what the work agent is about to do. It owns the access
// reviews, which come before an object is touched and include its later deletion, and the
// clients that objects are written with: they impersonate the executor, so that the API
// server decides about exactly the request that is made.
//
// It never writes itself, and never falls back to the permissions of the agent.
//
// Its invariant: an error means that the object must not be written.
package executor
