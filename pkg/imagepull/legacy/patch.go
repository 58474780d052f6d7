package legacy

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owner is the field manager of everything that these controllers write.
const Owner client.FieldOwner = "ocm.pullsecret.legacy"

// metadata identifies a Secret without its data.
func metadata(namespace, name string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return o
}

// change writes metadata of a Secret if it is still as it was read. It is a merge
// patch and no server-side apply: the finalizer may be owned by the field manager of
// another controller, and must go all the same.
func change(ctx context.Context, writer client.Writer, secret client.Object, fields map[string]any) error {
	fields["uid"], fields["resourceVersion"] = secret.GetUID(), secret.GetResourceVersion()
	patch, err := json.Marshal(map[string]any{"metadata": fields})
	if err != nil {
		return fmt.Errorf("encode metadata: %w", err)
	}
	err = writer.Patch(ctx, metadata(secret.GetNamespace(), secret.GetName()), client.RawPatch(types.MergePatchType, patch), Owner)
	if err != nil {
		return fmt.Errorf("write metadata of Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// settled ignores errors that only say that a Secret has changed or is gone: an event
// reports that.
func settled(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
