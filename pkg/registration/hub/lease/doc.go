// Package lease evaluates the leases of clusters: whether the agent renews its lease
// and whether its clock agrees with the hub's. It owns the conditions
// ManagedClusterConditionClockSynced and LeaseOverdue, and the status Unknown of
// ManagedClusterConditionAvailable; the agent reports that its cluster is available
// again. It never writes a lease.
//
// An agent is alive if the hub observed a heartbeat within the grace period, by the
// hub's clock and not by the time in the lease, so that a skewed clock does not make a
// cluster flap. Observations are in memory: after a restart of the hub a dead cluster
// is detected one grace period later. A renewal costs a read from the cache and no
// write; a renewal that is missed, and the end of the grace period, are a timer.
package lease
