package operand

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ReadPullSecret returns the .dockerconfigjson of the image pull secret in the
// operator's namespace, or nil if there is none: most clusters pull without
// credentials.
func ReadPullSecret(ctx context.Context, reader client.Reader, namespace string) ([]byte, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: namespace, Name: names.ImagePullSecret}
	if err := reader.Get(ctx, key, &secret); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("read image pull secret %s: %w", key, err)
	}
	return secret.Data[corev1.DockerConfigJsonKey], nil
}
