//go:build linux

package issuer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	testissuer "github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

const patience = await.Patience

var update = flag.Bool("update", false, "write the golden files")

// run runs the command without a cluster.
func run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, talk bytes.Buffer
	env := cli.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &talk},
		Name:      "kubectl ocm", Kube: cli.NewKube(), Clock: clock.RealClock{},
	}
	cmd := issuer.New(env)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return out.String(), talk.String(), err
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	out, talk, err := run(t, "export", "--clusters-config", "testdata/clusters.yaml", "--hub-issuer", "https://hub.example.com")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "authentication-config.golden", out)
	for _, words := range []string{
		"legacy is left out: kube-apiserver takes https issuers only",
		"kubeadm1 is left out: its issuer https://kubernetes.default.svc.cluster.local is also that of kubeadm2",
		"hub is left out: its issuer https://hub.example.com is the API server's own",
		"internal is left out: kube-apiserver cannot discover the keys of https://oidc.internal.svc",
		"by-uri is left out: its keys are not found by discovery",
	} {
		if !strings.Contains(talk, words) {
			t.Errorf("it does not say %q:\n%s", words, talk)
		}
	}
}

func TestExportOfNothing(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, "export", "--format", "authentication-config", "--clusters-config", "testdata/clusters.yaml", "legacy")
	if cli.ExitCode(err) != cli.CodeBlocked || out != "" {
		t.Errorf("got %q, %v", out, err)
	}
	if _, _, err := run(t, "export", "--clusters-config", "testdata/clusters.yaml", "nosuch"); cli.ExitCode(err) != cli.CodeNotFound {
		t.Errorf("a cluster that is not there: %v", err)
	}
	if _, _, err := run(t, "export", "--format", "vault", "--clusters-config", "testdata/clusters.yaml"); err == nil {
		t.Error("a format that does not exist is accepted")
	}
}

// TestAPIServerTakesIt starts a kube-apiserver with what was exported.
func TestAPIServerTakesIt(t *testing.T) {
	t.Parallel()
	path, err := filepath.Abs("testdata/authentication-config.golden")
	if err != nil {
		t.Fatal(err)
	}
	cp := controlplane.Start(t, controlplane.WithAPIServerArgs("--authentication-config="+path))
	log, err := os.ReadFile(cp.LogFile(controlplane.APIServer))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), "invalid authentication config") {
		t.Errorf("kube-apiserver says:\n%s", log)
	}
}

// TestAPIServerTrustsIt sends a workload's token to a kube-apiserver that was
// started with what was exported, and asks who it is.
func TestAPIServerTrustsIt(t *testing.T) {
	t.Parallel()
	const audience = "https://hub.example.com"
	key := testissuer.NewKey(t, "ES256")
	provider := testissuer.NewProvider(t, key)
	dir := t.TempDir()
	file := filepath.Join(dir, "clusters.yaml")
	text, err := json.Marshal(map[string]any{"clusters": []any{map[string]any{
		"name": "c1", "issuer": provider.URL, "keys": map[string]any{"discovery": map[string]any{}, "ca": string(provider.CA)},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, "export", "--format", "authentication-config", "--clusters-config", file, "--audience", audience)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "authentication.yaml")
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	cp := controlplane.Start(t, controlplane.WithAPIServerArgs("--authentication-config="+path))
	who := func(claims map[string]any) (authenticationv1.UserInfo, error) {
		c := cp.ClientFor(t, cp.ConfigForToken(key.Token(t, testissuer.BoundClaims(provider.URL, "app", "eso", clock.RealClock{}.Now(), claims))))
		review := &authenticationv1.SelfSubjectReview{}
		err := c.Create(t.Context(), review)
		return review.Status.UserInfo, err
	}
	var user authenticationv1.UserInfo
	await.Success(t, patience, "kube-apiserver to have the keys", func(context.Context) error {
		var err error
		user, err = who(nil)
		return err
	})
	if user.Username != "c1:system:serviceaccount:app:eso" || user.UID != "c1/uid-of-app-eso" ||
		!slices.Contains(user.Groups, "c1:serviceaccounts:app") || user.Extra["open-cluster-management.io/cluster"][0] != "c1" {
		t.Errorf("it is %+v", user)
	}
	for name, claims := range map[string]map[string]any{
		"another audience":          {"aud": []string{"https://other"}},
		"no ServiceAccount":         {"sub": "system:admin"},
		"a token without an object": {"kubernetes.io": nil},
		"a token without an end":    {"exp": nil},
	} {
		if got, err := who(claims); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
