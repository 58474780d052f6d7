// Package grace computes how long the hub waits for a heartbeat of a cluster before
// it sets the cluster's availability to unknown.
// The package is tested with its users, packages lease and taint.
package grace

import (
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

const (
	// periods is the number of lease durations in a grace period.
	periods = 5
	// overduePeriods is the number of lease durations after which a renewal was missed:
	// agents spread their renewals over a quarter of it, and may have to try again.
	overduePeriods = 2
	// defaultDuration is used for a lease duration of 0.
	defaultDuration = 60 * time.Second
)

// Of returns the grace period of a cluster.
func Of(cluster *clusterv1.ManagedCluster) time.Duration {
	return periods * Duration(cluster)
}

// Overdue returns how long after the last renewal of a lease the next one was missed.
func Overdue(cluster *clusterv1.ManagedCluster) time.Duration {
	return overduePeriods * Duration(cluster)
}

// Duration returns the lease duration of a cluster.
func Duration(cluster *clusterv1.ManagedCluster) time.Duration {
	duration := time.Duration(cluster.Spec.LeaseDurationSeconds) * time.Second
	if duration <= 0 {
		duration = defaultDuration
	}
	return duration
}
