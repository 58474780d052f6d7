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
	// defaultDuration is used for a lease duration of 0.
	defaultDuration = 60 * time.Second
)

// Of returns the grace period of a cluster.
func Of(cluster *clusterv1.ManagedCluster) time.Duration {
	duration := time.Duration(cluster.Spec.LeaseDurationSeconds) * time.Second
	if duration <= 0 {
		duration = defaultDuration
	}
	return periods * duration
}
