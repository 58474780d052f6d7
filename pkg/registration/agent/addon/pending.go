package addon

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// keyPendingHub identifies the hub that pending data is for.
const keyPendingHub = "hub"

func (r *Reconciler) pendingKey(it *item) client.ObjectKey {
	return client.ObjectKey{Namespace: r.config.Namespace, Name: names.AddOnPendingSecret(it.secret.Namespace, it.secret.Name)}
}

// pending returns the pending data of the last step: what this process stored,
// otherwise the cached Secret of an earlier process.
func (r *Reconciler) pending(s *scope, it *item) driver.Data {
	a := s.memory.attempt(it, s.now)
	if a.stored {
		return a.pending
	}
	secret := s.secrets[r.pendingKey(it)]
	if secret == nil || string(secret.Data[keyPendingHub]) != r.config.Hub.Digest() {
		return nil // The request was created on another hub.
	}
	data := driver.Data(maps.Clone(secret.Data))
	delete(data, keyPendingHub)
	return data
}

// setPending stores the data for the next step. Two agents of one cluster share it:
// the second one continues with the data of the first.
func (r *Reconciler) setPending(ctx context.Context, s *scope, it *item, data driver.Data) error {
	a := s.memory.attempt(it, s.now)
	if len(data) == 0 {
		return r.dropPending(ctx, s, it)
	}
	key := r.pendingKey(it)
	var old *corev1.Secret
	if a.stored || s.secrets[key] != nil {
		var err error
		if old, err = r.secrets.live(ctx, key); err != nil {
			return err
		}
	}
	stored := maps.Clone(data)
	stored[keyPendingHub] = []byte(r.config.Hub.Digest())
	err := r.secrets.write(ctx, old, key, stored, map[string]string{
		names.AnnotationCredentialAddOn:   s.addOn.Name,
		names.AnnotationCredentialPending: it.secret.Namespace + "/" + it.secret.Name,
	})
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		a.stored, a.pending = false, nil
		return fmt.Errorf("another agent requests the same credential: %w", err)
	}
	if err == nil {
		a.stored, a.pending = true, data
	}
	return err
}

// dropPending deletes the pending data.
func (r *Reconciler) dropPending(ctx context.Context, s *scope, it *item) error {
	key := r.pendingKey(it)
	a, known := s.memory.attempts[it.secret.Name]
	if s.secrets[key] == nil && (!known || !a.stored || a.pending == nil) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := client.IgnoreNotFound(r.config.Managed.GetClient().Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete Secret %s: %w", key, err)
	}
	delete(s.secrets, key)
	if known {
		a.stored, a.pending = true, nil
	}
	return nil
}
