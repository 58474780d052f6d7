package lease

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// heartbeat has the fields that show activity of an agent.
type heartbeat struct {
	// renewed is the time that the agent wrote into its lease.
	renewed time.Time
	// reported is when the agent last changed the availability of its cluster. The
	// hub sets "Unknown".
	reported time.Time
}

func heartbeatOf(cluster *clusterv1.ManagedCluster, lease *coordinationv1.Lease) heartbeat {
	var s heartbeat
	if lease.Spec.RenewTime != nil {
		s.renewed = lease.Spec.RenewTime.Time
	}
	condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if condition != nil && condition.Status != metav1.ConditionUnknown {
		s.reported = condition.LastTransitionTime.Time
	}
	return s
}

// observation is a heartbeat and when the hub first saw it.
type observation struct {
	heartbeat heartbeat
	at        time.Time
	// steady is the grace period of a cluster with a synced clock, 0 while the next
	// renewal must be reconciled.
	steady time.Duration
}

// heartbeats has the last observation of every cluster. The zero value is empty.
type heartbeats struct {
	mu   sync.Mutex
	last map[string]observation
}

// observe stores a heartbeat. It returns since when it has been the last one of the
// cluster, and the one before; known is false at the first observation.
func (h *heartbeats) observe(cluster string, s heartbeat, now time.Time) (since time.Time, before heartbeat, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		h.last = map[string]observation{}
	}
	last, known := h.last[cluster]
	// Availability that the hub itself set to unknown is no heartbeat.
	alive := !known || !s.renewed.Equal(last.heartbeat.renewed) ||
		!s.reported.IsZero() && !s.reported.Equal(last.heartbeat.reported)
	if alive {
		if s.reported.IsZero() {
			s.reported = last.heartbeat.reported
		}
		h.last[cluster] = observation{heartbeat: s, at: now}
		return now, last.heartbeat, known
	}
	return last.at, last.heartbeat, true
}

// steady records that renewals of a cluster need no reconciliation while its agent
// renews the lease in time.
func (h *heartbeats) steady(cluster string, period time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last, ok := h.last[cluster]; ok {
		last.steady = period
		h.last[cluster] = last
	}
}

// renewed records a renewal of the lease and reports whether the cluster is steady,
// so that the renewal needs no reconciliation.
func (h *heartbeats) renewed(cluster string, renewed, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, ok := h.last[cluster]
	if !ok || last.steady == 0 || now.Sub(renewed).Abs() >= last.steady {
		return false
	}
	last.heartbeat.renewed, last.at = renewed, now
	h.last[cluster] = last
	return true
}

func (h *heartbeats) forget(cluster string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.last, cluster)
}
