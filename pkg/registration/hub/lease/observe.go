package lease

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// sign is what changes when an agent does something.
type sign struct {
	// renewed is the time that the agent wrote into its lease.
	renewed time.Time
	// reported is when the agent last changed its word on whether its cluster
	// is available. "Unknown" is the hub's word.
	reported time.Time
}

func signOf(cluster *clusterv1.ManagedCluster, lease *coordinationv1.Lease) sign {
	var s sign
	if lease.Spec.RenewTime != nil {
		s.renewed = lease.Spec.RenewTime.Time
	}
	condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if condition != nil && condition.Status != metav1.ConditionUnknown {
		s.reported = condition.LastTransitionTime.Time
	}
	return s
}

// sighting is a sign of life and when the hub first saw it.
type sighting struct {
	sign sign
	at   time.Time
}

// journal remembers the last sighting of every cluster. The zero value is empty.
type journal struct {
	mu   sync.Mutex
	last map[string]sighting
}

// note returns since when nothing was seen of the cluster but s, and what was
// seen before; known is false when this is the first look at it.
func (j *journal) note(cluster string, s sign, now time.Time) (since time.Time, before sign, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.last == nil {
		j.last = map[string]sighting{}
	}
	last, known := j.last[cluster]
	// That the hub itself took the agent's word back is no sign of life.
	alive := !known || !s.renewed.Equal(last.sign.renewed) ||
		!s.reported.IsZero() && !s.reported.Equal(last.sign.reported)
	if alive {
		if s.reported.IsZero() {
			s.reported = last.sign.reported
		}
		j.last[cluster] = sighting{sign: s, at: now}
		return now, last.sign, known
	}
	return last.at, last.sign, true
}

func (j *journal) forget(cluster string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.last, cluster)
}
