package published

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Store takes what clusters publish; it is a *jwks.Store.
type Store interface {
	// Publish takes the keys of an accepted cluster.
	Publish(cluster, issuer string, jwks []byte) error
	// Withdraw forgets them.
	Withdraw(cluster string)
	// HubSynced ends the beginning: what was published has been seen.
	HubSynced()
}

// Reconciler keeps a store in step with the hub. It runs in every replica:
// each has a store of its own.
type Reconciler struct {
	// Client reads from a cache made with CacheOptions.
	Client client.Reader
	// Store is kept up to date.
	Store Store

	// mu makes reading and telling the store one step: what was read earlier
	// must not be told later.
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
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, r.withdrawn(req.Name, err)
	}
	if !believed(cluster) {
		r.Store.Withdraw(req.Name)
		return ctrl.Result{}, nil
	}
	published := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: req.Name, Name: names.IssuerConfigMap}
	if err := r.Client.Get(ctx, key, published); err != nil {
		return ctrl.Result{}, r.withdrawn(req.Name, err)
	}
	if published.DeletionTimestamp != nil {
		r.Store.Withdraw(req.Name)
		return ctrl.Result{}, nil
	}
	err := r.Store.Publish(req.Name, published.Data[names.IssuerKeyIssuer], []byte(published.Data[names.IssuerKeyJWKS]))
	if err != nil {
		// Only the cluster can mend it, and then we are told.
		ctrl.LoggerFrom(ctx).V(1).Info("Published keys are not used", "cluster", req.Name, "problem", err.Error())
	}
	return ctrl.Result{}, nil
}

// withdrawn withdraws the keys if err says that there is nothing to believe.
func (r *Reconciler) withdrawn(cluster string, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	r.Store.Withdraw(cluster)
	return nil
}

// believed says whether the hub vouches for a cluster.
func believed(cluster *clusterv1.ManagedCluster) bool {
	return cluster.DeletionTimestamp == nil && cluster.Spec.HubAcceptsClient &&
		apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) &&
		apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined)
}

// beginning takes everything that is published once the cache is filled, and
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
	var published corev1.ConfigMapList
	if err := b.reconciler.Client.List(ctx, &published); err != nil {
		return fmt.Errorf("published keys: %w", err)
	}
	var problems []error
	for i := range published.Items {
		for _, request := range owner(ctx, &published.Items[i]) {
			_, err := b.reconciler.Reconcile(ctx, request)
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	b.reconciler.Store.HubSynced()
	return nil
}
