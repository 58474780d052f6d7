package clustermanager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// convertedCRD is one of the CRDs that the webhook converts. All have the same CAs.
const convertedCRD = "managedclusteraddons.addon.open-cluster-management.io"

// webhookCA returns the CAs with which the API server verifies the webhook: those of
// the ConfigMap, or of the CRDs while the ConfigMap is being recreated, so that
// conversion does not stop.
func (r *Reconciler) webhookCA(ctx context.Context) ([]byte, error) {
	var published corev1.ConfigMap
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: names.HubNamespace, Name: names.CABundleConfigMap}, &published)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the CAs of the webhooks: %w", err)
	}
	if bundle := published.Data[names.KeyCABundle]; bundle != "" {
		return []byte(bundle), nil
	}
	return r.trustedCA(ctx)
}

// trustedCA returns the CAs of the CRDs.
func (r *Reconciler) trustedCA(ctx context.Context) ([]byte, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := r.Client.Get(ctx, client.ObjectKey{Name: convertedCRD}, &crd); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if c := crd.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
		return c.Webhook.ClientConfig.CABundle, nil
	}
	return nil, nil
}
