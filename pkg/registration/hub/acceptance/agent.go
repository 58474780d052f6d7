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

// keepApproval is how long an approved request of a cluster that is not
// accepted is the only record of it. Kubernetes deletes it after an hour; as a
// rule the acceptance follows within the second, and the record costs no write
// of its own.
const keepApproval = 5 * time.Minute

// errUndecided says that a cluster wants to register with a driver and that it
// cannot be known as whom: what it has stays as it is. Package grant tells users.
var errUndecided = errors.New("the registration annotations of the cluster cannot be used")

// holder returns whom the rights of an accepted cluster are for: the subjects of
// the driver that grants its identity, or else its recorded agent. A cluster that
// registers with such a driver has no recorded agent any more, and the credential
// of the one it had is not kept for a later acceptance.
func (r *Reconciler) holder(ctx context.Context, reader client.Reader, cluster *clusterv1.ManagedCluster) (holder, error) {
	_, plan, err := driver.Plan(r.Drivers, cluster)
	switch {
	case err != nil:
		return holder{}, errUndecided
	case plan == nil:
		agent, err := r.agent(ctx, reader, cluster)
		return recorded(cluster.Name, agent), err
	}
	_, err = r.forget(ctx, reader, cluster.Name)
	return holder{subjects: plan.Subjects}, err
}

// agent returns the agent of a cluster that registers with certificates, as reader
// sees it. The agent of a cluster that left is gone: its credential is not kept for a later
// acceptance.
func (r *Reconciler) agent(ctx context.Context, reader client.Reader, cluster *clusterv1.ManagedCluster) (record.Record, error) {
	known, err := record.Of(ctx, reader, cluster.Name)
	if err != nil {
		return known, err
	}
	if cluster.Annotations[names.AnnotationLeft] != "" {
		if err := known.Forget(ctx, r.Client, r.Live, cluster.Name); err != nil {
			return known, err
		}
		known = record.Record{}
	}
	// What was approved just before the acceptance may not be in the cache yet,
	// and an agent that was replaced must not come back even for a moment.
	if !known.Known() || !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
		reader = r.Live
	}
	requests, err := record.Requests(ctx, reader, cluster.Name)
	if err != nil {
		return known, err
	}
	return known.Elect(cluster.Name, requests), nil
}

// remember keeps the record of an agent whose request was approved, and whose
// cluster is not accepted, for longer than the request lives. A role without
// rules gives the agent nothing.
func (r *Reconciler) remember(ctx context.Context, cluster string) (ctrl.Result, error) {
	if err := usable(cluster); errors.Is(err, names.ErrClusterName) {
		return ctrl.Result{}, nil // It is never accepted.
	}
	known, err := record.Of(ctx, r.Client, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	requests, err := record.Requests(ctx, r.Client, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	elected := known.Elect(cluster, requests)
	if !elected.Known() || elected == known {
		return ctrl.Result{}, nil
	}
	if left := keepApproval - r.Clock.Since(elected.Since); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return ctrl.Result{}, r.ensureClusterRole(ctx, cluster, nil, recorded(cluster, elected))
}

// forget deletes the requests that made the agent of a cluster its agent, and
// returns what was known of it.
func (r *Reconciler) forget(ctx context.Context, reader client.Reader, cluster string) (record.Record, error) {
	known, err := record.Of(ctx, reader, cluster)
	if err != nil {
		return known, err
	}
	return known, known.Forget(ctx, r.Client, r.Live, cluster)
}
