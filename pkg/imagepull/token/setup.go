package token

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/wake"
)

// workers is how many Secrets are worked on at a time. A worker mostly waits for
// the API server, or for its turn.
const workers = 10

// Times between failed attempts for one Secret.
const (
	firstRetry = time.Second
	mostRetry  = 5 * time.Minute
)

// SetupWithManager starts the controller with mgr. What wakes it rings changed.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, changed *wake.Signal) error {
	r.memory = newMemory()
	if err := r.Metrics.registerer.Register(newState(ctx, r, mgr.Elected())); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("pullsecret.token").
		For(&corev1.Secret{}).
		Watches(&corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(r.ownedBy), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: r.otherwise,
		})).
		WatchesRawSource(changed.Source(r.all)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, mostRetry),
			NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
				return newQueue(name, limiter, func(req reconcile.Request) rank { return r.rank(ctx, req) })
			},
		}).
		Complete(r)
}

// otherwise reports whether a changed ServiceAccount is another one, or has another
// pull secret.
func (r *Reconciler) otherwise(e event.UpdateEvent) bool {
	pointer := r.Form.Pointer()
	return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetAnnotations()[pointer] != e.ObjectNew.GetAnnotations()[pointer]
}

// all lists the pull secrets.
func (r *Reconciler) all(ctx context.Context) []reconcile.Request {
	return r.requests(ctx, func(*corev1.Secret) bool { return true })
}

// ownedBy lists the pull secrets of a ServiceAccount that is gone or has changed.
func (r *Reconciler) ownedBy(ctx context.Context, account client.Object) []reconcile.Request {
	return r.requests(ctx, func(secret *corev1.Secret) bool {
		ref, ok := r.Form.Of(secret)
		return ok && ref.Name == account.GetName()
	}, client.InNamespace(account.GetNamespace()))
}

func (r *Reconciler) requests(ctx context.Context, wanted func(*corev1.Secret) bool, options ...client.ListOption) []reconcile.Request {
	var secrets corev1.SecretList
	if err := r.Client.List(ctx, &secrets, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil // The cache is stopping; the next start looks at everything.
	}
	var requests []reconcile.Request
	for i := range secrets.Items {
		if secret := &secrets.Items[i]; wanted(secret) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}})
		}
	}
	return requests
}
