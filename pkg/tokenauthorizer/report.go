package tokenauthorizer

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// How often decisions are reported. They are counts for users, so a replica
// writes no object more often than every reportEvery, and no more than maxReports
// objects per reportCheck: 1,000 busy clusters cost a hub less than one write per
// second and replica.
const (
	reportEvery = 5 * time.Minute
	reportCheck = 30 * time.Second
	maxReports  = 20
)

// reporter writes into the status of the rules on the hub, now and then, how often
// was decided by them. Replicas add to the same counts; the resource version has them
// not overwrite each other.
type reporter struct {
	// client is set before anything is reported.
	client client.Client
	clock  clock.WithTicker

	mu     sync.Mutex
	counts map[string]v1alpha1.Decisions
	// last is the cluster that was reported last: the next round begins behind it,
	// so that each has its turn.
	last string
}

func newReporter(clock clock.WithTicker) *reporter {
	return &reporter{clock: clock, counts: map[string]v1alpha1.Decisions{}}
}

// counting is an auditor that also counts for the reporter.
type counting struct {
	authorizer.Auditor

	reports *reporter
}

// Record implements authorizer.Auditor.
func (c counting) Record(e authorizer.Event) {
	if cluster := e.Decision.Identity.Cluster; cluster != "" {
		c.reports.count(cluster, e.Err)
	}
	if c.Auditor != nil {
		c.Auditor.Record(e)
	}
}

// count counts a decision, but no request that could not be decided.
func (r *reporter) count(cluster string, err error) {
	denied := denial.Class(0)
	if err != nil {
		denied = denial.Of(err).Reason.Class()
	}
	if err != nil && denied == denial.Unavailable {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.counts[cluster]
	if err == nil {
		d.Allowed++
	} else {
		d.Denied++
	}
	r.counts[cluster] = d
}

// run reports counts until ctx ends.
func (r *reporter) run(ctx context.Context) error {
	for pause.For(ctx, r.clock, reportCheck) {
		r.flush(ctx)
	}
	return nil
}

// flush adds what was counted to the objects that are due. A write that fails is
// tried again with the next round.
func (r *reporter) flush(ctx context.Context) {
	written := 0
	for _, cluster := range r.turn() {
		if written == maxReports {
			return
		}
		done, err := r.add(ctx, cluster)
		if done {
			written++
			r.last = cluster
		}
		if err != nil && !apierrors.IsConflict(err) {
			return // The hub does not answer, or does not let us.
		}
	}
}

// turn are the clusters with counts, beginning behind the last one.
func (r *reporter) turn() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	clusters := slices.Sorted(maps.Keys(r.counts))
	i, found := slices.BinarySearch(clusters, r.last)
	if found {
		i++
	}
	return slices.Concat(clusters[i:], clusters[:i])
}

// add adds the count of one cluster, if its object is due, and reports whether it
// wrote. A cluster without an object of its own counts for the defaults.
func (r *reporter) add(ctx context.Context, cluster string) (bool, error) {
	object, status, err := r.object(ctx, cluster)
	if err != nil || object == nil {
		if object == nil && err == nil {
			r.counted(cluster, r.countOf(cluster)) // There is nowhere to write it.
		}
		return false, err
	}
	now := r.clock.Now()
	if d := status.Decisions; d != nil && now.Sub(d.LastUpdateTime.Time) < reportEvery {
		return false, nil
	}
	before := clone(object)
	if status.Decisions == nil {
		status.Decisions = &v1alpha1.Decisions{}
	}
	more := r.countOf(cluster)
	status.Decisions.Allowed += more.Allowed
	status.Decisions.Denied += more.Denied
	status.Decisions.LastUpdateTime = metav1.NewTime(now)
	if err := writeStatus(ctx, r.client, object, before); err != nil {
		return true, err
	}
	r.counted(cluster, more)
	return true, nil
}

func (r *reporter) countOf(cluster string) v1alpha1.Decisions {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[cluster]
}

// counted takes away what was written.
func (r *reporter) counted(cluster string, d v1alpha1.Decisions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.counts[cluster]
	left.Allowed -= d.Allowed
	left.Denied -= d.Denied
	if left == (v1alpha1.Decisions{}) {
		delete(r.counts, cluster)
		return
	}
	r.counts[cluster] = left
}

// object returns the object that decides about a cluster, nil if there is none.
func (r *reporter) object(ctx context.Context, cluster string) (client.Object, *v1alpha1.TokenExchangeStatus, error) {
	for _, namespace := range []string{cluster, ""} {
		object, status := ruleObject(namespace)
		err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.Name}, object)
		if !apierrors.IsNotFound(err) {
			return object, status, err
		}
	}
	return nil, nil, nil
}
