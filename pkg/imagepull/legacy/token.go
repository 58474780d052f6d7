package legacy

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// labelled is the value of the label of legacy token Secrets.
const labelled = "true"

// Tokens labels legacy token Secrets, so that one command lists them.
type Tokens struct {
	// Client writes.
	Client client.Client
	// Cache holds the metadata of token Secrets, as NewCache returns it.
	Cache cache.Cache
}

// SetupWithManager starts the controller with mgr.
func (r *Tokens) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("pullsecret.legacytoken").
		WatchesRawSource(source.Kind(r.Cache, metadata("", ""), &handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{})).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Tokens) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	secret := metadata("", "")
	if err := r.Cache.Get(ctx, req.NamespacedName, secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !managed(secret) || secret.Labels[names.OpenShiftLegacyToken] == labelled {
		return ctrl.Result{}, nil
	}
	err := change(ctx, r.Client, secret, map[string]any{"labels": map[string]string{names.OpenShiftLegacyToken: labelled}})
	return ctrl.Result{}, settled(err)
}

// managed reports whether OpenShift's controllers made a token Secret, for a pull
// secret.
func managed(token metav1.Object) bool {
	annotations := token.GetAnnotations()
	return annotations[names.AnnotationCreatedBy] == names.OpenShiftDockercfg && annotations[corev1.ServiceAccountNameKey] != ""
}
