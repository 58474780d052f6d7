// Package pool keeps running control planes for tests and leases them one by one.
//
// A control plane takes four seconds of CPU time to start, and a test that needs one
// for itself often less than half a second. A Plane that is returned is therefore
// reset: everything that differs in etcd from what a new control plane has there is
// put back, and the next holder gets the Plane only when the API server's own caches
// have followed and the store was read again and found clean. One that does not get
// clean is stopped.
//
// A Pool serves one process, or, over a Unix socket, all processes of a run: a lease
// is a connection, so that a test that crashes returns what it holds.
//
// It knows nothing of tests; package controlplane does.
package pool
