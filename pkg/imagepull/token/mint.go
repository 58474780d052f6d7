package token

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
)

// mint requests a token for a Secret. The UID is a precondition: a ServiceAccount
// that was recreated since gets none.
func (r *Reconciler) mint(ctx context.Context, secret *corev1.Secret, account metav1.OwnerReference, audience string) (string, error) {
	request := &authenticationv1.TokenRequest{
		ObjectMeta: metav1.ObjectMeta{UID: account.UID},
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(r.Spec.TTL / time.Second)),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID},
		},
	}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: account.Name}}
	began := r.Clock.Now()
	err := r.Client.SubResource("token").Create(ctx, of, request)
	r.Metrics.requests.Observe(r.Clock.Since(began).Seconds())
	if err != nil {
		return "", fmt.Errorf("request a token of ServiceAccount %s: %w", client.ObjectKeyFromObject(of), err)
	}
	return request.Status.Token, nil
}

// write stores credentials and returns what is known of the Secret then. The UID is
// a precondition: a Secret that is gone is not made again.
func (r *Reconciler) write(ctx context.Context, secret *corev1.Secret, credentials []content.Credential) (write, content.Summary, error) {
	data, err := content.Encode(r.Spec.Format.In(secret.Type), credentials...)
	if err != nil {
		return write{}, content.Summary{}, err
	}
	config := corev1ac.Secret(secret.Name, secret.Namespace).WithUID(secret.UID).WithData(data)
	if err := r.Client.Apply(ctx, config, Owner, client.ForceOwnership); err != nil {
		return write{}, content.Summary{}, fmt.Errorf("write the pull secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	w := write{secret: secret.UID, at: r.Clock.Now()}
	if config.ResourceVersion != nil {
		w.version = *config.ResourceVersion
	}
	return w, content.Of(&corev1.Secret{Data: data}), nil
}

// key is the namespaced name of a Secret.
func key(secret *corev1.Secret) types.NamespacedName { return client.ObjectKeyFromObject(secret) }
