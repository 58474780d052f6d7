package serviceaccount

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
)

// errTaken is about a Secret that is not ours.
var errTaken = errors.New("has another owner")

// newSecret is a ServiceAccount's pull secret as it begins.
func (r *Reconciler) newSecret(account *corev1.ServiceAccount) (*corev1.Secret, error) {
	empty, err := content.Empty(r.Format)
	return &corev1.Secret{ObjectMeta: r.Form.Metadata(account), Type: r.Format.Type(), Data: empty}, err
}

// find returns the pull secret of a ServiceAccount from the cache, nil if there is
// none. It has the given name, unless the form takes over Secrets of others.
func (r *Reconciler) find(ctx context.Context, account *corev1.ServiceAccount, name string) (*corev1.Secret, error) {
	if r.Form.Pointer() == "" {
		var found corev1.Secret
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: account.Namespace, Name: name}, &found); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return &found, nil
	}
	var found corev1.SecretList
	if err := r.Client.List(ctx, &found, client.InNamespace(account.Namespace), client.MatchingFields{byAccount: account.Name}); err != nil {
		return nil, fmt.Errorf("list the pull secrets of ServiceAccount %s: %w", client.ObjectKeyFromObject(account), err)
	}
	return r.Form.Choose(found.Items, account), nil
}

// ensureSecret returns the pull secret from the cache, and creates missing objects. The
// event of a new one triggers the next reconcile. It returns nil for a ServiceAccount
// that needs none.
func (r *Reconciler) ensureSecret(ctx context.Context, account *corev1.ServiceAccount) (*corev1.Secret, error) {
	want, err := r.newSecret(account)
	if err != nil {
		return nil, err
	}
	found, err := r.find(ctx, account, want.Name)
	if err != nil {
		return nil, failed("read", want, err)
	}
	if found == nil {
		return r.createSecret(ctx, want, account)
	}
	switch _, legacy := owner.LegacyToken(found); {
	case legacy: // It stays as it is.
		return found, nil
	case !r.Form.Complete(found, account):
		return found, r.repairSecret(ctx, found, want, account)
	case found.Type != want.Type: // It cannot be changed. The event of the deletion makes the other.
		return found, r.deleteSecret(ctx, found)
	}
	return found, nil
}

// createSecret makes the pull secret that the cache does not have.
func (r *Reconciler) createSecret(ctx context.Context, want *corev1.Secret, account *corev1.ServiceAccount) (*corev1.Secret, error) {
	if r.Usage != nil {
		if used, err := r.Usage.Uses(ctx, client.ObjectKeyFromObject(account)); err != nil || !used {
			return nil, err
		}
	}
	err := r.Client.Create(ctx, want, Owner)
	if !apierrors.IsAlreadyExists(err) {
		return want, failed("create", want, err)
	}
	var found corev1.Secret // The cache does not hold it yet, or it lost its label.
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), &found); err != nil {
		return nil, failed("read", want, err)
	}
	return &found, r.repairSecret(ctx, &found, want, account)
}

// repairSecret gives a pull secret its metadata back.
func (r *Reconciler) repairSecret(ctx context.Context, found, want *corev1.Secret, account *corev1.ServiceAccount) error {
	if r.Form.Complete(found, account) {
		return nil
	}
	if found.Type != want.Type || !r.Form.Adopts(found, account) {
		return fmt.Errorf("the Secret %s %w; delete or rename it, so that the pull secret of ServiceAccount %s can be created with this name",
			client.ObjectKeyFromObject(found), errTaken, account.Name)
	}
	config := corev1ac.Secret(found.Name, found.Namespace).WithUID(found.UID).
		WithLabels(want.Labels).WithAnnotations(want.Annotations).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("ServiceAccount").WithName(account.Name).WithUID(account.UID))
	return failed("repair", found, r.Client.Apply(ctx, config, Owner, client.ForceOwnership))
}

// deleteSecret deletes a pull secret.
func (r *Reconciler) deleteSecret(ctx context.Context, found *corev1.Secret) error {
	if found.DeletionTimestamp != nil {
		return nil
	}
	err := r.Client.Delete(ctx, found, client.Preconditions{UID: &found.UID})
	return failed("delete", found, client.IgnoreNotFound(err))
}

// failed says what failed, if anything did.
func failed(what string, secret *corev1.Secret, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s the pull secret %s: %w", what, client.ObjectKeyFromObject(secret), err)
}
