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

// Release lets legacy pull secrets go: no deletion of one waits any longer for
// controllers that do not run. It is idempotent, changes nothing else, and returns
// how many it changed. No namespace means all. The client reads from the API server.
func Release(ctx context.Context, c client.Client, namespaces ...string) (released int, err error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		n, err := releaseIn(ctx, c, namespace)
		released += n
		if err != nil {
			return released, err
		}
	}
	return released, nil
}

func releaseIn(ctx context.Context, c client.Client, namespace string) (released int, err error) {
	var found metav1.PartialObjectMetadataList
	for {
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := c.List(ctx, &found, client.InNamespace(namespace), client.Limit(page), client.Continue(found.Continue),
			client.MatchingFieldsSelector{Selector: typeOf(corev1.SecretTypeDockercfg)})
		if err != nil {
			return released, fmt.Errorf("list legacy pull secrets: %w", err)
		}
		for i := range found.Items {
			secret := &found.Items[i]
			if !controllerutil.ContainsFinalizer(secret, names.OpenShiftLegacyToken) {
				continue
			}
			if err := releaseSure(ctx, c, secret); err != nil {
				return released, err
			}
			released++
		}
		if found.Continue == "" {
			return released, nil
		}
	}
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

// release removes the finalizer of a Secret, whoever put it there.
func release(ctx context.Context, writer client.Writer, secret client.Object) error {
	if !controllerutil.RemoveFinalizer(secret, names.OpenShiftLegacyToken) {
		return nil
	}
	return change(ctx, writer, secret, map[string]any{"finalizers": secret.GetFinalizers()})
}
