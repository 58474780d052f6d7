package status

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const (
	requestTimeout = 10 * time.Second
	firstRetry     = 200 * time.Millisecond
	lastRetry      = 30 * time.Second
)

// Reconciler writes the status of one ManagedCluster.
type Reconciler struct {
	// Client reads the ManagedCluster from a cache and patches its status.
	Client client.Client
	// Clock dates conditions.
	Clock clock.PassiveClock
	// Sources read the managed cluster.
	Sources Sources
	// Period is how often availability and version are checked without an event.
	Period time.Duration
	// Changed fires when a fact of the managed cluster or the certificate
	// condition may have changed.
	Changed source.Source
	// Credential returns the condition of the agent's credential, nil for none.
	Credential func() *metav1.Condition

	outage outage
}

// SetupWithManager adds the reconciler to the manager of a hub connection.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.status").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: watch.Updates(changesStatus)})).
		WatchesRawSource(r.Changed).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// changesStatus reports whether an update changes the status. Changes of labels, which
// a hub writes for every add-on, and of annotations cause no probe of the cluster.
func changesStatus(before, after *clusterv1.ManagedCluster) bool {
	return !apiequality.Semantic.DeepEqual(before.Status, after.Status)
}

// Reconcile gathers, compares and writes once.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cluster clusterv1.ManagedCluster
	if err := r.Client.Get(ctx, req.NamespacedName, &cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !mayReport(&cluster) {
		return ctrl.Result{}, nil // A change of the cluster triggers a reconciliation.
	}
	facts, err := r.gather(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	desired := cluster.DeepCopy()
	r.apply(&desired.Status, facts)
	if !apiequality.Semantic.DeepEqual(cluster.Status, desired.Status) {
		// The hub writes conditions of the same list, so the patch must fail on a
		// conflict.
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		patch := client.MergeFromWithOptions(&cluster, client.MergeFromWithOptimisticLock{})
		if err := r.Client.Status().Patch(ctx, desired, patch); err != nil {
			return ctrl.Result{}, fmt.Errorf("patch the status of ManagedCluster %s: %w", cluster.Name, err)
		}
	}
	if facts.health.pending {
		return ctrl.Result{RequeueAfter: outageRetry}, nil
	}
	return ctrl.Result{RequeueAfter: r.Period}, nil
}

// mayReport reports whether the agent may write the cluster's status: the hub accepts
// it and does not report its clock, and so the times in its conditions, out of sync.
func mayReport(cluster *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) &&
		!apimeta.IsStatusConditionFalse(cluster.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced)
}

// facts are the contents of one status write.
type facts struct {
	health    health
	version   string
	resources resources
	// claims is nil if claims are not reported.
	claims     []clusterv1.ManagedClusterClaim
	credential *metav1.Condition
}

func (r *Reconciler) gather(ctx context.Context) (facts, error) {
	f := facts{credential: r.Credential()}
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	f.health = r.outage.evaluate(r.Clock.Now(), r.Sources.Health(ctx))
	f.version = r.Sources.Version(ctx)
	nodes, err := r.Sources.Nodes(ctx)
	if err != nil {
		return f, fmt.Errorf("list the nodes of the managed cluster: %w", err)
	}
	f.resources = sum(nodes)
	f.claims, err = r.Sources.Claims(ctx)
	if err != nil {
		return f, fmt.Errorf("list the claims of the managed cluster: %w", err)
	}
	return f, nil
}

func (r *Reconciler) apply(status *clusterv1.ManagedClusterStatus, f facts) {
	set := func(c metav1.Condition) {
		c.LastTransitionTime = metav1.NewTime(r.Clock.Now())
		apimeta.SetStatusCondition(&status.Conditions, c)
	}
	// Joined is set once and never changed.
	if !apimeta.IsStatusConditionTrue(status.Conditions, clusterv1.ManagedClusterConditionJoined) {
		set(metav1.Condition{Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue, Reason: names.ReasonJoined, Message: names.MessageJoined})
	}
	if f.health.condition != nil {
		set(*f.health.condition)
	}
	if f.credential != nil {
		set(*f.credential)
	}
	if f.version != "" {
		status.Version.Kubernetes = f.version
	}
	f.resources.apply(status)
	if f.claims != nil && !slices.Equal(f.claims, status.ClusterClaims) {
		status.ClusterClaims = f.claims
	}
}
