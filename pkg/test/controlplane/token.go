package controlplane

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

// Token has the API server issue a token of a ServiceAccount, and waits for one that
// the controller manager has still to create.
func (c *ControlPlane) Token(tb testing.TB, namespace, account string, spec authenticationv1.TokenRequestSpec) string {
	tb.Helper()
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	request := &authenticationv1.TokenRequest{Spec: spec}
	tokens := c.Client(tb).SubResource("token")
	await.Condition(tb, startTimeout, namespace+" has ServiceAccount "+account, func(ctx context.Context) (bool, error) {
		err := tokens.Create(ctx, of, request)
		return err == nil, client.IgnoreNotFound(err)
	})
	return request.Status.Token
}

// LegacyToken has the controller manager put a token of a ServiceAccount into the
// Secret "legacy" of its namespace.
func (c *ControlPlane) LegacyToken(tb testing.TB, namespace, account string) string {
	tb.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "legacy",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	admin := c.Client(tb)
	if err := admin.Create(tb.Context(), secret); err != nil {
		tb.Fatal(err)
	}
	await.Condition(tb, startTimeout, "the Secret has a token", func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, err
	})
	return string(secret.Data[corev1.ServiceAccountTokenKey])
}

// KeySet is the key set (JWKS) of those tokens, as the API server serves it.
func (c *ControlPlane) KeySet(tb testing.TB) []byte {
	tb.Helper()
	clients, err := discovery.NewDiscoveryClientForConfig(c.Config(tb))
	if err != nil {
		tb.Fatal(err)
	}
	data, err := clients.RESTClient().Get().AbsPath("/openid/v1/jwks").DoRaw(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
