package serviceaccount

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/wake"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// workers is how many ServiceAccounts are worked on at a time.
const workers = 10

// byAccount is the index field of pull secrets in the cache.
const byAccount = "account"

// SetupWithManager starts the controller with mgr. What wakes it rings changed.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, changed *wake.Signal) error {
	r.contention = newContention()
	accounts := func(secret client.Object) []string { return r.Form.Accounts(secret) }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Secret{}, byAccount, accounts); err != nil {
		return fmt.Errorf("prepare to find pull secrets by ServiceAccount: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("pullsecret.serviceaccount").
		For(&corev1.ServiceAccount{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.named), builder.WithPredicates(predicate.Funcs{
			// The event of its ServiceAccount already triggers a reconcile.
			CreateFunc: func(event.CreateEvent) bool { return false },
		})).
		WatchesRawSource(changed.Source(func(ctx context.Context) []reconcile.Request { return r.accounts(ctx) })).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	if !r.Namespaced {
		b.WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.inNamespace), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
			UpdateFunc: func(e event.UpdateEvent) bool { return selectedOtherwise(e.ObjectOld, e.ObjectNew) },
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		}))
	}
	if r.Usage != nil {
		for _, s := range r.Usage.Sources() {
			b.WatchesRawSource(s)
		}
	}
	return b.Complete(r)
}

// named maps a pull secret to the ServiceAccounts that it may be for.
func (r *Reconciler) named(_ context.Context, secret client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range r.Form.Accounts(secret) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: name}})
	}
	return requests
}

// selectedOtherwise reports whether the selection can decide otherwise about a
// changed namespace.
func selectedOtherwise(before, after client.Object) bool {
	return !maps.Equal(before.GetLabels(), after.GetLabels()) ||
		before.GetAnnotations()[names.AnnotationPullSecret] != after.GetAnnotations()[names.AnnotationPullSecret]
}

func (r *Reconciler) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.accounts(ctx, client.InNamespace(namespace.GetName()))
}

func (r *Reconciler) accounts(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	var found corev1.ServiceAccountList
	if err := r.Client.List(ctx, &found, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil // The cache is stopping; the next start looks at everything.
	}
	requests := make([]reconcile.Request, len(found.Items))
	for i := range found.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&found.Items[i])
	}
	return requests
}
