package jwks_test

import (
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// TestRealAPIServers takes the keys of two API servers, which have one and the
// same issuer as kubeadm's have, in every way, and verifies tokens of theirs.
func TestRealAPIServers(t *testing.T) {
	t.Parallel()
	one, two := controlplane.Lease(t), controlplane.Lease(t)
	kubeconfig, token := filepath.Join(t.TempDir(), "kubeconfig"), filepath.Join(t.TempDir(), "token")
	// What a pod may: any ServiceAccount reads its own cluster's keys.
	account := mint(t, one)
	write(t, token, []byte(account))
	write(t, kubeconfig, two.KubeconfigFor(t, "reader", "system:serviceaccounts"))
	parsed, iss := parse(t, account)

	discovery := func(cp *controlplane.ControlPlane, auth jwks.Auth) jwks.Source {
		return jwks.Source{Discovery: &jwks.Discovery{URL: cp.URL}, CA: cp.Config(t).CAData, Auth: auth}
	}
	for name, test := range map[string]struct{ one, two jwks.Source }{
		"discovery": {discovery(one, jwks.Auth{TokenFile: token}), jwks.Source{
			Discovery: &jwks.Discovery{}, Auth: jwks.Auth{KubeconfigFile: kubeconfig},
		}},
		"URI": {
			jwks.Source{URI: one.URL + issuer.KeysPath, CA: one.Config(t).CAData, Auth: jwks.Auth{TokenFile: token}},
			jwks.Source{URI: two.URL + issuer.KeysPath, Auth: jwks.Auth{KubeconfigFile: kubeconfig}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, jwks.Cluster{Name: "cluster1", Issuer: iss, Source: test.one}, jwks.Cluster{Name: "cluster2", Issuer: iss, Source: test.two})
			for cluster, cp := range map[string]*controlplane.ControlPlane{"cluster1": one, "cluster2": two} {
				if err := e.status(t, cluster).Err; err != nil {
					t.Fatalf("%s: %v", cluster, err)
				}
				signedBy(t, e, mint(t, cp), cluster)
			}
		})
	}

	anonymous := start(t, jwks.Cluster{Name: "cluster1", Issuer: iss, Source: discovery(one, jwks.Auth{})})
	anonymous.refuses(t, iss, parsed.KeyID(), denial.KeysUnavailable)
	if err := anonymous.status(t, "cluster1").Err; err == nil || !strings.Contains(err.Error(), "token file") {
		t.Errorf("without a credential: %v; want what to do", err)
	}
}

// mint asks an API server for a token of the default ServiceAccount.
func mint(t *testing.T, cp *controlplane.ControlPlane) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "workload"}}
	if err := client.IgnoreAlreadyExists(cp.Client(t).Create(t.Context(), account)); err != nil {
		t.Fatal(err)
	}
	return cp.Token(t, account.Namespace, account.Name, authenticationv1.TokenRequestSpec{})
}

// signedBy checks that the keys of cluster and of no other verify token.
func signedBy(t *testing.T, e *env, text, cluster string) {
	t.Helper()
	token, iss := parse(t, text)
	keys, err := e.Lookup(t.Context(), iss, token.KeyID())
	if err != nil || len(keys) != 1 || keys[0].Cluster != cluster {
		t.Fatalf("Lookup: %+v, %v; want one key of %s", keys, err, cluster)
	}
	if err := keys[0].Verify(token); err != nil {
		t.Errorf("a token of %s: %v", cluster, err)
	}
}

// parse reads a token and what it says of its issuer.
func parse(t *testing.T, text string) (token jwk.Token, iss string) {
	t.Helper()
	token, err := jwk.ParseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := token.UnverifiedClaims(&claims); err != nil {
		t.Fatal(err)
	}
	return token, claims.Issuer
}
