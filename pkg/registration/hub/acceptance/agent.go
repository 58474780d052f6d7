package acceptance

import (
	"context"
	"errors"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/record"
)

// recordAfter is how long the approved CSR of a cluster that is not accepted is
// the only record of its agent. Kubernetes deletes the CSR after an hour; acceptance
// usually follows within a second and records the agent without an extra write.
const recordAfter = 5 * time.Minute

// errUndecided is returned for a cluster whose registration annotations do not
// identify it. Its permissions stay unchanged; package grant reports the problem.
var errUndecided = errors.New("the registration annotations of the cluster are invalid")

func (r *Reconciler) live() record.Reader { return record.Live(r.Live) }

func (r *Reconciler) cached() record.Reader { return record.Cached(r.Client) }

// grantee returns the subjects of the bindings of an accepted cluster: those of the
// driver that grants its identity, or else its recorded agent. A cluster that
// registers with such a driver has no recorded agent, and the approval of an
// earlier agent is removed so that a later acceptance cannot use it.
func (r *Reconciler) grantee(ctx context.Context, reader record.Reader, cluster *clusterv1.ManagedCluster) (grantee, error) {
	_, plan, err := driver.Plan(r.Drivers, cluster)
	switch {
	case err != nil:
		return grantee{}, errUndecided
	case plan == nil:
		agent, err := r.agent(ctx, reader, cluster)
		return recorded(cluster.Name, agent), err
	}
	_, err = r.forget(ctx, reader, cluster.Name)
	return grantee{subjects: plan.Subjects}, err
}

// agent returns the agent of a cluster that registers with certificates, as reader
// sees it. A cluster that detached has none, and the approval of the agent that left is
// removed, so that a later acceptance cannot use it.
func (r *Reconciler) agent(ctx context.Context, reader record.Reader, cluster *clusterv1.ManagedCluster) (record.Record, error) {
	if elected, err := r.newcomer(ctx, cluster); err != nil || elected.Known() {
		return elected, err
	}
	known, err := record.Of(ctx, reader, cluster.Name)
	if err != nil {
		return known, err
	}
	if cluster.Annotations[names.AnnotationLeft] != "" {
		if err := r.confirmLeft(ctx, cluster); err != nil {
			return known, err
		}
		// The next agent is recorded when the annotation is gone. Until then the record
		// can only be of the agent that left, however often this is done.
		return record.Record{}, known.Forget(ctx, r.Client, r.live(), cluster.Name)
	}
	// The cache may lack an approval from just before the acceptance, and a
	// replaced agent must not regain access even for a moment.
	if !known.Known() || !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
		reader = r.live()
	}
	requests, err := reader.Requests(ctx, cluster.Name)
	if err != nil {
		return known, err
	}
	return known.Elect(cluster.Name, requests), nil
}

// newcomer returns the agent of a cluster that is accepted for the first time, if the cache
// has its approval. No earlier agent could regain access, so that the API server need only
// confirm the approval: it is spared the bindings of the cluster and a search of the requests
// of all clusters. An approval that the cache lacks takes over when it arrives.
func (r *Reconciler) newcomer(ctx context.Context, cluster *clusterv1.ManagedCluster) (record.Record, error) {
	if apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) != nil ||
		cluster.Annotations[names.AnnotationLeft] != "" {
		return record.Record{}, nil
	}
	known, err := record.Of(ctx, r.cached(), cluster.Name)
	if err != nil {
		return record.Record{}, err
	}
	confirmed, err := r.cached().Confirmed(ctx, r.Live, cluster.Name)
	if err != nil {
		return record.Record{}, err
	}
	elected := record.Record{}.Elect(cluster.Name, confirmed)
	if known.Group || elected.Since.Before(known.Since) { // A request that is gone came later.
		return record.Record{}, nil
	}
	return elected, nil
}

// errStale is the error for a cluster that was accepted again after what the cache shows.
var errStale = errors.New("the cached ManagedCluster is older than its acceptance")

// confirmLeft makes sure of the API server's word that a cluster has detached. A cache
// that is behind shows so of a cluster whose next agent may have been recorded.
func (r *Reconciler) confirmLeft(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	var live clusterv1.ManagedCluster
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cluster), &live); err != nil {
		return err
	}
	if live.UID != cluster.UID || live.Annotations[names.AnnotationLeft] == "" {
		return errStale
	}
	return nil
}

// recordAgent records an agent whose CSR was approved before its cluster is
// accepted, because Kubernetes deletes the CSR. The role that it is bound to has no
// rules.
func (r *Reconciler) recordAgent(ctx context.Context, cluster string) (ctrl.Result, error) {
	if err := validateName(cluster); errors.Is(err, names.ErrClusterName) {
		return ctrl.Result{}, nil // It is never accepted.
	}
	known, err := record.Of(ctx, r.Client, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	requests, err := r.cached().Requests(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	elected := known.Elect(cluster, requests)
	if !elected.Known() || elected == known {
		return ctrl.Result{}, nil
	}
	if left := recordAfter - r.Clock.Since(elected.Since); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return ctrl.Result{}, r.ensureClusterRole(ctx, cluster, nil, recorded(cluster, elected))
}

// forget deletes the CSRs that approved the agent of a cluster, and returns the record
// of the agent.
func (r *Reconciler) forget(ctx context.Context, reader record.Reader, cluster string) (record.Record, error) {
	known, err := record.Of(ctx, reader, cluster)
	if err != nil {
		return known, err
	}
	return known, known.Forget(ctx, r.Client, r.live(), cluster)
}
