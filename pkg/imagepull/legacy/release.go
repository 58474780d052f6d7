package legacy

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// page is how many Secrets are listed at a time.
const page = 500

// Held returns the metadata of the Secrets whose deletion waits for these
// controllers, or would. No namespace means all. The reader is the API server.
func Held(ctx context.Context, reader client.Reader, namespaces ...string) ([]metav1.PartialObjectMetadata, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var held []metav1.PartialObjectMetadata
	for _, namespace := range namespaces {
		found, err := heldIn(ctx, reader, namespace)
		if err != nil {
			return nil, fmt.Errorf("list legacy pull secrets: %w", err)
		}
		held = append(held, found...)
	}
	return held, nil
}

func heldIn(ctx context.Context, reader client.Reader, namespace string) (held []metav1.PartialObjectMetadata, err error) {
	var found metav1.PartialObjectMetadataList
	for {
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := reader.List(ctx, &found, client.InNamespace(namespace), client.Limit(page), client.Continue(found.Continue),
			client.MatchingFieldsSelector{Selector: typeOf(corev1.SecretTypeDockercfg)})
		if err != nil {
			return nil, err
		}
		for i := range found.Items {
			if controllerutil.ContainsFinalizer(&found.Items[i], names.OpenShiftLegacyToken) {
				held = append(held, found.Items[i])
			}
		}
		if found.Continue == "" {
			return held, nil
		}
	}
}

// Release lets legacy pull secrets go: no deletion of one waits any longer for
// controllers that do not run. It is idempotent and changes nothing else.
func Release(ctx context.Context, c client.Client, held []metav1.PartialObjectMetadata) error {
	for i := range held {
		if err := releaseSure(ctx, c, &held[i]); err != nil {
			return err
		}
	}
	return nil
}

// releaseSure removes the finalizer of a Secret though others write it meanwhile.
func releaseSure(ctx context.Context, c client.Client, secret *metav1.PartialObjectMetadata) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		err := release(ctx, c, secret)
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
		return errors.Join(client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(secret), secret)), err)
	})
}

// release removes the finalizer of a Secret, regardless of who added it.
func release(ctx context.Context, writer client.Writer, secret client.Object) error {
	if !controllerutil.RemoveFinalizer(secret, names.OpenShiftLegacyToken) {
		return nil
	}
	return change(ctx, writer, secret, map[string]any{"finalizers": secret.GetFinalizers()})
}
