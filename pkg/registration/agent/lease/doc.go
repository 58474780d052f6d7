// Package lease owns the heartbeat of a managed cluster: while the hub accepts
// the cluster, its Lease is renewed every leaseDurationSeconds. It never
// creates or deletes the Lease, which is the hub's, and writes
// renewTime alone.
package lease
