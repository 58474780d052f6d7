package removal

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owner is the field manager of what removal writes.
const Owner client.FieldOwner = "ocm.pullsecret.removal"

// Detach takes the pull secrets out of the imagePullSecrets of all that list them.
func (l *Left) Detach(ctx context.Context, c client.Client) error {
	for i := range l.Accounts {
		if err := l.detach(ctx, c, &l.Accounts[i]); err != nil {
			return err
		}
	}
	return nil
}

// detach changes the list of one ServiceAccount on the condition that nothing has
// changed, and looks again where something has: the list is others' as well.
func (l *Left) detach(ctx context.Context, c client.Client, account *corev1.ServiceAccount) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		rest, points := l.without(account), l.points(account)
		if len(rest) == len(account.ImagePullSecrets) && !points {
			return nil
		}
		metadata := map[string]any{"uid": account.UID, "resourceVersion": account.ResourceVersion}
		if points {
			metadata["annotations"] = map[string]any{l.pointer: nil}
		}
		patch, err := json.Marshal(map[string]any{"metadata": metadata, "imagePullSecrets": rest})
		if err != nil {
			return err
		}
		err = c.Patch(ctx, account.DeepCopy(), client.RawPatch(types.MergePatchType, patch), Owner)
		if !apierrors.IsConflict(err) {
			return err
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(account), account); err != nil {
			return err
		}
		return err
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the pull secret from ServiceAccount %s: %w", client.ObjectKeyFromObject(account), err)
	}
	return nil
}

// Delete deletes the pull secrets.
func (l *Left) Delete(ctx context.Context, c client.Client) error {
	for i := range l.Secrets {
		secret := &l.Secrets[i]
		err := c.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the pull secret %s: %w", client.ObjectKeyFromObject(secret), err)
		}
	}
	return nil
}
