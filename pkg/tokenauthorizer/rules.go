package tokenauthorizer

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
)

// rules follows the rules on the hub: every TokenExchangePolicy, and the
// TokenExchangeDefaults. It runs in every replica.
type rules struct {
	client     client.Client
	hub        config.Hub
	changed    func(*config.Config, error)
	reports    *reporter
	conditions *conditions

	// mu has the beginning and the controller take turns, with hub.
	mu sync.Mutex
}

// follow adds the controller to mgr.
func (r *rules) follow(mgr ctrl.Manager) error {
	everywhere := false
	// One request stands for all objects: they make one configuration. What we
	// write into the status is no change of it.
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	changes := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("extauthz.rules").
		Watches(&v1alpha1.TokenExchangePolicy{}, all, changes).
		Watches(&v1alpha1.TokenExchangeDefaults{}, all, changes).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("rules on the hub: %w", err)
	}
	return nil
}

// begin takes over the rules that there are: none are a configuration too.
func (r *rules) begin(ctx context.Context) error {
	_, err := r.Reconcile(ctx, reconcile.Request{})
	if err != nil && ctx.Err() == nil {
		return err
	}
	return r.reports.run(ctx)
}

// Reconcile implements reconcile.Reconciler.
func (r *rules) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	objects, err := Objects(ctx, r.client)
	if err != nil {
		return reconcile.Result{}, err
	}
	current := r.hub.Config(objects)
	r.changed(current, nil)
	r.conditions.follow(objects, current)
	return reconcile.Result{}, nil
}

// Objects reads the rules on a hub.
func Objects(ctx context.Context, hub client.Reader) (config.Objects, error) {
	var policies v1alpha1.TokenExchangePolicyList
	if err := hub.List(ctx, &policies); err != nil {
		return config.Objects{}, fmt.Errorf("token exchange policies: %w", err)
	}
	out := config.Objects{Policies: policies.Items}
	defaults := &v1alpha1.TokenExchangeDefaults{}
	switch err := hub.Get(ctx, client.ObjectKey{Name: v1alpha1.Name}, defaults); {
	case err == nil:
		out.Defaults = defaults
	case !apierrors.IsNotFound(err):
		return config.Objects{}, fmt.Errorf("token exchange defaults: %w", err)
	}
	return out, nil
}
