package controlplane

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Published is the data that the agent of this cluster publishes about its keys
// on a hub that calls it cluster, by a ManagedCluster with that UID.
func (c *ControlPlane) Published(tb testing.TB, issuer, cluster, uid string) map[string]string {
	tb.Helper()
	admin, account := c.Client(tb), names.RegistrationAgentServiceAccount(names.KlusterletName)
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.AgentNamespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: names.AgentNamespace, Name: account}},
	} {
		if err := admin.Create(tb.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			tb.Fatal(err)
		}
	}
	return map[string]string{
		names.IssuerKeyIssuer: issuer, names.IssuerKeyJWKS: string(c.KeySet(tb)),
		names.IssuerKeyProofs: c.Token(tb, names.AgentNamespace, account, authenticationv1.TokenRequestSpec{
			Audiences: []string{names.IssuerProofAudience(cluster, uid)},
		}),
	}
}
