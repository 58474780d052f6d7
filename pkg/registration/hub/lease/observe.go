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
	// calm is the grace period of a cluster of which the hub says that its
	// clock is right; 0 while there is anything to say at the next renewal.
	calm time.Duration
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

// calm tells that there is nothing to say about a cluster as long as its agent
// goes on like this.
func (j *journal) calm(cluster string, period time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if last, ok := j.last[cluster]; ok {
		last.calm = period
		j.last[cluster] = last
	}
}

// renewed notes a renewal of the lease of a calm cluster and reports whether
// that is all there is to it.
func (j *journal) renewed(cluster string, renewed, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	last, ok := j.last[cluster]
	if !ok || last.calm == 0 || now.Sub(renewed).Abs() >= last.calm {
		return false
	}
	last.sign.renewed, last.at = renewed, now
	j.last[cluster] = last
	return true
}

func (j *journal) forget(cluster string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.last, cluster)
}
