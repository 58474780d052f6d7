package published

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Store takes what the hub knows; it is a *jwks.Store.
type Store interface {
	// Observe takes what is known about a cluster and what it publishes.
	Observe(c keytrust.Candidate) error
	// Forget drops a cluster that is gone.
	Forget(cluster string)
	// HubSynced ends the beginning: every cluster has been seen.
	HubSynced()
}

// Reconciler keeps a store in step with the hub. It runs in every replica:
// each has a store of its own.
type Reconciler struct {
	// Client reads from a cache made with CacheOptions.
	Client client.Reader
	// Store is kept up to date.
	Store Store

	// mu makes reading and updating the store one step: what was read earlier
	// must not be stored later.
	mu sync.Mutex
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	everywhere := false
	err := ctrl.NewControllerManagedBy(mgr).
		Named("extauthz.published").
		For(&clusterv1.ManagedCluster{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(owner)).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("published keys: %w", err)
	}
	return mgr.Add(beginning{r})
}

// owner maps a published ConfigMap to the cluster in whose namespace it is.
func owner(_ context.Context, object client.Object) []reconcile.Request {
	if object.GetName() != names.IssuerConfigMap {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cluster := &clusterv1.ManagedCluster{}
	err := r.Client.Get(ctx, req.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		r.Store.Forget(req.Name)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	candidate := keytrust.Candidate{Cluster: keytrust.ClusterOf(cluster)}
	published := &corev1.ConfigMap{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: req.Name, Name: names.IssuerConfigMap}, published)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err == nil && published.DeletionTimestamp.IsZero() {
		candidate.Data = published.Data
	}
	if err := r.Store.Observe(candidate); err != nil {
		// Only the cluster can fix it, and then an event arrives.
		ctrl.LoggerFrom(ctx).V(1).Info("Published keys are not used", "cluster", req.Name, "problem", err.Error())
	}
	return ctrl.Result{}, nil
}

// beginning takes every cluster once the cache is filled, and
// only then says that it is known: until then a cluster without keys may be one
// whose turn has not come.
type beginning struct{ reconciler *Reconciler }

var (
	_ manager.Runnable               = beginning{}
	_ manager.LeaderElectionRunnable = beginning{}
)

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (beginning) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (b beginning) Start(ctx context.Context) error {
	var clusters clusterv1.ManagedClusterList
	if err := b.reconciler.Client.List(ctx, &clusters); err != nil {
		return fmt.Errorf("managed clusters: %w", err)
	}
	var problems []error
	for i := range clusters.Items {
		_, err := b.reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: clusters.Items[i].Name}})
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	b.reconciler.Store.HubSynced()
	return nil
}
