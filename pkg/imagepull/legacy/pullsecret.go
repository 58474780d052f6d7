package legacy

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// PullSecrets marks legacy pull secrets, and deletes the other half of a pair of
// which one is deleted.
type PullSecrets struct {
	// Client writes, and reads pull secrets from the cache.
	Client client.Client
	// Live reads from the API server, before something is deleted.
	Live client.Reader
	// Cache holds the metadata of token Secrets, as NewCache returns it.
	Cache cache.Cache
}

// SetupWithManager starts the controller with mgr. If a token Secret was deleted while
// no controller ran, the controller notices at its next start, when it reconciles every
// pull secret.
func (r *PullSecrets) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("pullsecret.legacypullsecret").
		For(&corev1.Secret{}).
		WatchesRawSource(source.Kind(r.Cache, metadata("", ""), handler.TypedEnqueueRequestsFromMapFunc(r.fedBy))).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *PullSecrets) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var secret corev1.Secret
	if err := r.Client.Get(ctx, req.NamespacedName, &secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	token, legacy := owner.LegacyToken(&secret)
	if !legacy { // It may have been one that was handed over to a bound token.
		return ctrl.Result{}, settled(release(ctx, r.Client, &secret))
	}
	if secret.DeletionTimestamp != nil {
		return ctrl.Result{}, settled(r.finish(ctx, &secret, token))
	}
	gone, err := r.gone(ctx, secret.Namespace, token)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case gone:
		return ctrl.Result{}, settled(r.follow(ctx, &secret))
	}
	return ctrl.Result{}, settled(r.mark(ctx, &secret))
}

// mark says on a legacy pull secret that it is one, and has its deletion wait for
// that of its token.
func (r *PullSecrets) mark(ctx context.Context, secret *corev1.Secret) error {
	marked := secret.Annotations[names.AnnotationOpenShiftBinding] == names.OpenShiftLegacy
	if marked && controllerutil.ContainsFinalizer(secret, names.OpenShiftLegacyToken) {
		return nil
	}
	controllerutil.AddFinalizer(secret, names.OpenShiftLegacyToken)
	return change(ctx, r.Client, secret, map[string]any{
		"annotations": map[string]string{names.AnnotationOpenShiftBinding: names.OpenShiftLegacy},
		"finalizers":  secret.Finalizers,
	})
}

// finish deletes the token of a pull secret that is being deleted, then lets that go.
func (r *PullSecrets) finish(ctx context.Context, secret *corev1.Secret, token string) error {
	if !controllerutil.ContainsFinalizer(secret, names.OpenShiftLegacyToken) {
		return nil
	}
	// The selector has the type in it, which metadata does not show.
	var found metav1.PartialObjectMetadataList
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := r.Live.List(ctx, &found, client.InNamespace(secret.Namespace), client.MatchingFields{
		"metadata.name": token, "type": string(corev1.SecretTypeServiceAccountToken),
	})
	if err != nil {
		return fmt.Errorf("find the legacy token Secret %s of namespace %s: %w", token, secret.Namespace, err)
	}
	for i := range found.Items {
		if err := r.deleteToken(ctx, &found.Items[i]); err != nil {
			return err
		}
	}
	return release(ctx, r.Client, secret)
}

func (r *PullSecrets) deleteToken(ctx context.Context, token *metav1.PartialObjectMetadata) error {
	if !managed(token) {
		return nil
	}
	of := metadata(token.Namespace, token.Name)
	if err := r.Client.Delete(ctx, of, client.Preconditions{UID: &token.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the legacy token Secret %s: %w", client.ObjectKeyFromObject(token), err)
	}
	klog.FromContext(ctx).Info("Deleted the legacy token because its pull secret was deleted", "token", klog.KObj(token))
	return nil
}

// gone reports whether the API server has no Secret of the name of a token.
func (r *PullSecrets) gone(ctx context.Context, namespace, token string) (bool, error) {
	key := client.ObjectKey{Namespace: namespace, Name: token}
	if err := r.Cache.Get(ctx, key, metadata("", "")); !apierrors.IsNotFound(err) {
		return false, err
	}
	err := r.Live.Get(ctx, key, metadata("", ""))
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// follow deletes a pull secret whose token is gone, if it is still as it was read:
// it may have been handed over to a bound token since.
func (r *PullSecrets) follow(ctx context.Context, secret *corev1.Secret) error {
	err := r.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion})
	if err != nil {
		return fmt.Errorf("delete the legacy pull secret %s, whose token is gone: %w", client.ObjectKeyFromObject(secret), err)
	}
	klog.FromContext(ctx).Info("Deleted the legacy pull secret because its token was deleted")
	return nil
}

// fedBy lists the pull secrets with the token of a Secret.
func (r *PullSecrets) fedBy(ctx context.Context, token *metav1.PartialObjectMetadata) []reconcile.Request {
	var secrets corev1.SecretList
	if err := r.Client.List(ctx, &secrets, client.InNamespace(token.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil // The cache is stopping; the next start looks at everything.
	}
	var requests []reconcile.Request
	for secret := range slices.Values(secrets.Items) {
		if name, ok := owner.LegacyToken(&secret); ok && name == token.Name {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&secret)})
		}
	}
	return requests
}
