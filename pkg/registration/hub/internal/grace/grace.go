// Package grace says how long the hub waits for a sign of life of a cluster
// before it calls the cluster's state unknown.
package grace

import (
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

const (
	// periods is how many lease durations may pass.
	periods = 5
	// defaultDuration stands for a lease duration of 0.
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
