// Package lease owns the heartbeat of a managed cluster: while the hub accepts the
// cluster, it renews the cluster's Lease every leaseDurationSeconds. It writes only
// renewTime, and never creates or deletes the Lease, which belongs to the hub.
package lease
