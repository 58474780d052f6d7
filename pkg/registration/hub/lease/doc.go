// Package lease judges from the lease that a cluster's agent renews whether the
// agent is alive and whether its clock agrees with the hub's. It
// owns the condition ManagedClusterConditionClockSynced and the status Unknown
// of ManagedClusterConditionAvailable; that the cluster is available again is
// for its agent to say. It never writes a lease.
//
// Whether an agent is alive is judged by when the hub saw its last sign of
// life, not by the time that the agent wrote into the lease, so a skewed clock
// makes no cluster flap. What was seen is kept in memory: after a restart of the
// hub a dead cluster is found out one grace period later. A renewal costs a look
// into the cache and no write; the end of the grace period is a timer.
package lease
