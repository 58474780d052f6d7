package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// errTaken is about a Secret that is not ours.
var errTaken = errors.New("is not this controller's")

// newSecret is a ServiceAccount's pull secret as it begins.
func (r *Reconciler) newSecret(account *corev1.ServiceAccount) (*corev1.Secret, error) {
	empty, err := content.Empty(r.Format)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   account.Namespace,
			Name:        names.PullSecret(account.Name, account.UID),
			Labels:      owner.Labels(),
			Annotations: map[string]string{names.AnnotationPullSecretAccount: account.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID,
			}},
		},
		Type: r.Format.Type(),
		Data: empty,
	}, err
}

// ensureSecret returns the pull secret as the cache has it, and makes what is
// missing. One that was made just now comes back as an event. It returns nil for a
// ServiceAccount that needs none.
func (r *Reconciler) ensureSecret(ctx context.Context, account *corev1.ServiceAccount) (*corev1.Secret, error) {
	want, err := r.newSecret(account)
	if err != nil {
		return nil, err
	}
	var found corev1.Secret
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(want), &found)
	switch {
	case apierrors.IsNotFound(err):
		return r.createSecret(ctx, want, account)
	case err != nil:
		return nil, failed("read", want, err)
	case !ours(&found, account):
		return &found, r.repairSecret(ctx, &found, want, account)
	case found.Type != want.Type: // It cannot be changed. The event of the deletion makes the other.
		return &found, r.deleteSecret(ctx, &found)
	}
	return &found, nil
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

// ours reports whether a Secret is the pull secret of a ServiceAccount.
func ours(secret *corev1.Secret, account *corev1.ServiceAccount) bool {
	ref, ok := owner.Of(secret)
	return ok && ref.UID == account.UID
}

// repairSecret gives a pull secret its metadata back. The name has the UID in it,
// so that a Secret which has it, the type, and one of the marks was made here.
func (r *Reconciler) repairSecret(ctx context.Context, found, want *corev1.Secret, account *corev1.ServiceAccount) error {
	if ours(found, account) {
		return nil
	}
	marked := found.Annotations[names.AnnotationPullSecretAccount] == account.Name || maps.Equal(found.Labels, want.Labels)
	if found.Type != want.Type || !marked {
		return fmt.Errorf("the Secret %s %w: delete or rename it, and the pull secret of ServiceAccount %s is made under its name",
			client.ObjectKeyFromObject(found), errTaken, account.Name)
	}
	config := corev1ac.Secret(want.Name, want.Namespace).WithUID(found.UID).
		WithLabels(want.Labels).WithAnnotations(want.Annotations).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("ServiceAccount").WithName(account.Name).WithUID(account.UID))
	return failed("repair", want, r.Client.Apply(ctx, config, Owner, client.ForceOwnership))
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
