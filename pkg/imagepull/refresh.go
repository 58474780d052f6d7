package imagepull

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/request"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// RequestRefresh has the controllers replace the tokens of a pull secret that were
// issued at a time or before. It is idempotent, and pulls work meanwhile: the old
// tokens are valid until the new ones are there, and after.
func RequestRefresh(ctx context.Context, writer client.Writer, secret types.NamespacedName, issued time.Time) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{names.AnnotationPullSecretRefresh: request.For(issued)},
	}})
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}
	err = writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("ocm.pullsecret.request"))
	if err != nil {
		return fmt.Errorf("annotate the pull secret %s: %w", secret, err)
	}
	return nil
}
