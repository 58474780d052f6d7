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

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pages"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Held returns the metadata of the Secrets whose deletion waits for these controllers,
// or would. Without options it searches all namespaces. The reader is the API server.
func Held(ctx context.Context, reader client.Reader, options ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	var held []metav1.PartialObjectMetadata
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := pages.Each(ctx, reader, list, func(secret *metav1.PartialObjectMetadata) {
		if controllerutil.ContainsFinalizer(secret, names.OpenShiftLegacyToken) {
			held = append(held, *secret)
		}
	}, append(options, client.MatchingFieldsSelector{Selector: typeOf(corev1.SecretTypeDockercfg)})...)
	if err != nil {
		return nil, fmt.Errorf("list legacy pull secrets: %w", err)
	}
	return held, nil
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
