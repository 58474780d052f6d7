package klusterlet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

// addOnPullSecret copies the image pull secret into every namespace with the label of
// add-on namespaces.
type addOnPullSecret struct {
	client    client.Client
	applier   *apply.Applier
	namespace string
}

func setupAddOnPullSecret(mgr ctrl.Manager, config Config) error {
	a := &addOnPullSecret{
		client:    mgr.GetClient(),
		applier:   &apply.Applier{Client: mgr.GetClient(), FieldManager: "ocm.addon-pull-secret"},
		namespace: config.Namespace,
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("operator.addon-pull-secret").
		For(&corev1.Namespace{}, builder.WithPredicates(predicate.NewPredicateFuncs(forAddOns))).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(a.namespacesOf)).
		Complete(a)
}

func forAddOns(obj client.Object) bool { return obj.GetLabels()[names.LabelAddOnNamespace] == "true" }

// namespacesOf returns the namespace of a copy, and every add-on namespace for
// the original.
func (a *addOnPullSecret) namespacesOf(ctx context.Context, obj client.Object) []reconcile.Request {
	if obj.GetNamespace() != a.namespace {
		return watch.Named("", obj.GetNamespace())
	}
	return watch.Listed(ctx, a.client, &corev1.NamespaceList{}, client.MatchingLabels{names.LabelAddOnNamespace: "true"})
}

// Reconcile copies the secret into one namespace.
func (a *addOnPullSecret) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var ns corev1.Namespace
	if err := a.client.Get(ctx, client.ObjectKey{Name: req.Name}, &ns); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !forAddOns(&ns) || !ns.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	data, err := operand.ReadPullSecret(ctx, a.client, a.namespace)
	if err != nil || data == nil {
		return ctrl.Result{}, err
	}
	_, err = a.applier.Apply(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: names.ImagePullSecret},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: data},
	})
	return ctrl.Result{}, err
}
