package tokenauthorizer

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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// publications informs the store about the hub's clusters and their publications. It
// reads and never writes, and makes no decision: package keytrust, which the store
// calls, decides which keys are trusted. The namespace of a ConfigMap, never its data,
// identifies the cluster of its keys. It runs in every replica: each has a store of its
// own.
type publications struct {
	// hub reads from a cache made with CacheOptions.
	hub   client.Reader
	store *jwks.Store

	// mu makes reading and updating the store one step: what was read earlier
	// must not be stored later.
	mu sync.Mutex
}

// follow adds the controller to mgr.
func (p *publications) follow(mgr ctrl.Manager) error {
	everywhere := false
	err := ctrl.NewControllerManagedBy(mgr).
		Named("extauthz.published").
		For(&clusterv1.ManagedCluster{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(owner)).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere}).
		Complete(p)
	if err != nil {
		return fmt.Errorf("published keys: %w", err)
	}
	return nil
}

// owner maps a published ConfigMap to the cluster of its namespace.
func owner(_ context.Context, object client.Object) []reconcile.Request {
	if object.GetName() != names.IssuerConfigMap {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
}

// Reconcile implements reconcile.Reconciler.
func (p *publications) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cluster := &clusterv1.ManagedCluster{}
	err := p.hub.Get(ctx, req.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		p.store.Forget(req.Name)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	candidate := keytrust.Candidate{Cluster: keytrust.ClusterOf(cluster)}
	published := &corev1.ConfigMap{}
	err = p.hub.Get(ctx, client.ObjectKey{Namespace: req.Name, Name: names.IssuerConfigMap}, published)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err == nil && published.DeletionTimestamp.IsZero() {
		candidate.Data = published.Data
	}
	if err := p.store.Observe(candidate); err != nil {
		// Only the cluster can fix it, and then an event arrives.
		ctrl.LoggerFrom(ctx).V(1).Info("Published keys are not used", "cluster", req.Name, "problem", err.Error())
	}
	return ctrl.Result{}, nil
}

// begin reads every cluster once the cache is filled, and only then reports that the
// hub is known: until then a cluster without keys may be one that begin has not read
// yet.
func (p *publications) begin(ctx context.Context) error {
	var clusters clusterv1.ManagedClusterList
	if err := p.hub.List(ctx, &clusters); err != nil {
		return fmt.Errorf("managed clusters: %w", err)
	}
	var problems []error
	for i := range clusters.Items {
		_, err := p.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: clusters.Items[i].Name}})
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	p.store.HubSynced()
	return nil
}
