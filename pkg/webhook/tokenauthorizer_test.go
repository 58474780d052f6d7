package webhook_test

import (
	"context"
	"crypto/x509"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/servingcert"
)

func tokenAuthorizerObjects() servingcert.Objects {
	return servingcert.Objects{
		Signer: names.TokenAuthorizerSignerSecret, Serving: names.TokenAuthorizerServingCertSecret,
		Bundle: names.TokenAuthorizerCAConfigMap,
	}
}

// TestTokenAuthorizerCertificate has the operator issue what the token
// authorizer serves with, when there is one and no longer. It is here because it needs
// the operator with its issuer, as the tests of the webhook do.
func TestTokenAuthorizerCertificate(t *testing.T) {
	t.Parallel()
	h := newHub(t, rules())
	inOrder(t,
		step{"none without a token authorizer", h.noCertificate},
		step{"one that its CA signed, for the Service", h.certified},
		step{"that it issues again when somebody deletes it", h.certifiedAgain},
		step{"and that goes with the token authorizer", h.certificateGone},
	)
}

func (h *hub) noCertificate(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		_, err := h.certificate(ctx, names.AddOnWebhookServingCertSecret)
		return text(err)
	})
	if _, err := h.certificate(t.Context(), names.TokenAuthorizerSignerSecret); !apierrors.IsNotFound(err) {
		t.Errorf("the CA: %v", err)
	}
}

func (h *hub) certified(t *testing.T) {
	t.Helper()
	h.annotate(t, "true")
	eventually(t, func(ctx context.Context) string {
		var bundle corev1.ConfigMap
		key := client.ObjectKey{Namespace: names.HubNamespace, Name: names.TokenAuthorizerCAConfigMap}
		if err := h.admin.Get(ctx, key, &bundle); err != nil {
			return err.Error()
		}
		cert, err := h.certificate(ctx, names.TokenAuthorizerServingCertSecret)
		if err != nil {
			return err.Error()
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(bundle.Data[names.KeyCABundle]))
		_, err = cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: names.TokenAuthorizer + "." + names.HubNamespace + ".svc"})
		return text(err)
	})
}

func (h *hub) certifiedAgain(t *testing.T) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.HubNamespace, Name: names.TokenAuthorizerServingCertSecret}}
	if err := h.admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		_, err := h.certificate(ctx, secret.Name)
		return text(err)
	})
}

func (h *hub) certificateGone(t *testing.T) {
	t.Helper()
	h.annotate(t, "false")
	eventually(t, func(ctx context.Context) string {
		for _, obj := range []client.Object{
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: names.TokenAuthorizerSignerSecret}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: names.TokenAuthorizerServingCertSecret}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: names.TokenAuthorizerCAConfigMap}},
		} {
			key := client.ObjectKey{Namespace: names.HubNamespace, Name: obj.GetName()}
			if err := h.admin.Get(ctx, key, obj); !apierrors.IsNotFound(err) {
				return key.Name + " is still there: " + text(err)
			}
		}
		return ""
	})
}

// annotate says on the ClusterManager whether there is to be a token authorizer.
func (h *hub) annotate(t *testing.T, wanted string) {
	t.Helper()
	cm := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterManagerName}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+names.AnnotationTokenAuthorizer+`":"`+wanted+`"}}}`))
	if err := h.admin.Patch(t.Context(), cm, patch); err != nil {
		t.Fatal(err)
	}
}

func text(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}
