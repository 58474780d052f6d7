package legacytoken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owner is the field manager of what is written here.
const Owner client.FieldOwner = "ocm-legacy-tokens"

// ErrChanged says that an object is not as it was when it was decided about.
var ErrChanged = errors.New("it changed during the command; run the command again")

// Quarantine has the API server refuse a token from now on.
func Quarantine(ctx context.Context, c client.Client, t *Token, now time.Time) error {
	return label(ctx, c, t, new(now.UTC().Format(time.DateOnly)))
}

// Restore has the API server accept a token again.
func Restore(ctx context.Context, c client.Client, t *Token) error { return label(ctx, c, t, nil) }

// label sets or removes the label, if the Secret is as it was read.
func label(ctx context.Context, c client.Client, t *Token, since *string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": t.uid, "resourceVersion": t.version, "labels": map[string]*string{LabelInvalidSince: since},
	}})
	if err != nil {
		return fmt.Errorf("encode the label: %w", err)
	}
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name}}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return changed(c.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch), Owner))
}

// Delete deletes a token Secret if it is as it was read. With a directory, it is
// written there first.
func Delete(ctx context.Context, c client.Client, t *Token, backupDir string) error {
	if backupDir != "" {
		if err := backUp(ctx, c, t, backupDir); err != nil {
			return err
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name}}
	return changed(c.Delete(ctx, secret, client.Preconditions{UID: &t.uid, ResourceVersion: &t.version}))
}

// changed returns the meaning of an error of a conditional write.
func changed(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ErrChanged
	}
	return err
}
