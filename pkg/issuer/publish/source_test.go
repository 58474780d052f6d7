package publish_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/publish"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

// newSigner writes a key pair as kube-apiserver reads it, and returns its id.
func newSigner(t *testing.T) (private, public, id string) {
	t.Helper()
	key, keyPEM, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	private, public = filepath.Join(dir, "next.key"), filepath.Join(dir, "next.pub")
	for path, data := range map[string][]byte{private: keyPEM, public: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return private, public, issuer.KeyOf(t, "ES256", key).ID
}

// read asks a cluster, with tokens of a ServiceAccount that no controller makes:
// controllers do not work where nobody believes their tokens.
func read(t *testing.T, cp *controlplane.ControlPlane) (publish.Issuer, error) {
	t.Helper()
	admin := cp.Client(t)
	account := types.NamespacedName{Namespace: "default", Name: "publisher"}
	await.Success(t, patience, "the ServiceAccount", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}))
	})
	source, err := publish.NewSource(cp.Config(t), account)
	if err != nil {
		t.Fatal(err)
	}
	return source.Read(t.Context())
}

// TestRealAPIServers go through what an API server can be: before the switch of
// a rotation, after it, and one that signs with a key that it does not serve.
func TestRealAPIServers(t *testing.T) {
	t.Parallel()
	private, public, next := newSigner(t)
	for name, tc := range map[string]struct {
		args   []string
		keys   int
		tested bool // With the next key.
		fails  string
	}{
		"one key":                {keys: 1},
		"the next key is served": {args: []string{"--service-account-key-file=" + public}, keys: 2},
		"the next key signs": {
			args: []string{"--service-account-key-file=" + public, "--service-account-signing-key-file=" + private}, keys: 2, tested: true,
		},
		"a key that is not served signs": {
			args: []string{"--service-account-signing-key-file=" + private}, fails: "tokens are signed with key " + `"` + next + `"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := read(t, controlplane.Start(t, controlplane.WithAPIServerArgs(tc.args...)).ControlPlane)
			if tc.fails != "" {
				if !errors.Is(err, publish.ErrSelfTest) || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if err != nil || len(got.KeySet.Keys) != tc.keys || (got.Tested == next) != tc.tested || got.Tested == "" {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
