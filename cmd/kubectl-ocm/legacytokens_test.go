//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/logs"
)

// TestLegacyTokensAreNeverPrinted runs every command about legacy tokens in every
// format, as verbose as can be, and looks for the token in what it prints.
func TestLegacyTokensAreNeverPrinted(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, cp.Kubeconfig(t, "c1"), 0o600); err != nil {
		t.Fatal(err)
	}
	create := func(object client.Object) {
		t.Helper()
		await.Success(t, time.Minute, "created", func(ctx context.Context) error { return admin.Create(ctx, object) })
	}
	create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}})
	token := cp.LegacyToken(t, "default", "app")
	create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"r.example.com":{"username":"u","password":"` + token + `"}}}`)},
	})
	traces := logs.Traces(token[strings.LastIndex(token, ".")+1:])
	for _, command := range []string{
		"list", "list -o wide", "list -o json", "list -o yaml", "list -o name", "list -o jsonpath={}", "list -o go-template={{.}}",
		"list -o custom-columns=A:.", "list -A",
		"migrate default/legacy", "migrate default/legacy --registry r.example.com", "migrate --all --registry r.example.com --dry-run=server",
		"migrate --all --registry r.example.com --timeout 1s --dry-run=none",
		"quarantine default/legacy", "quarantine --all --dry-run=server", "quarantine default/legacy --force --dry-run=none",
		"restore --all", "restore default/legacy --dry-run=server", "restore default/legacy --dry-run=none",
		"delete default/legacy", "quarantined earlier", "delete default/legacy --force --dry-run=server",
		"delete default/legacy --force --backup-dir " + t.TempDir() + " --dry-run=none",
	} {
		if command == "quarantined earlier" {
			quarantine(t, admin)
			continue
		}
		out := ocm(t, kubeconfig, append([]string{"legacy-tokens"}, strings.Fields(command)...)...)
		for _, trace := range traces {
			if strings.Contains(out, trace) {
				t.Errorf("%s prints the token: %s", command, out)
			}
		}
		if !strings.Contains(out, "/secrets") {
			t.Errorf("%s is not verbose: %s", command, out)
		}
	}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "legacy"}, &corev1.Secret{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the token was not deleted: %v", err)
	}
}

// quarantine has the token of the test quarantined long enough to be deleted.
func quarantine(t *testing.T, admin client.Client) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "legacy"}}
	patch := `{"metadata":{"labels":{"kubernetes.io/legacy-token-invalid-since":"2024-01-01"}}}`
	if err := admin.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// ocm runs the command as verbose as can be and returns all that it prints. What it
// ends with does not matter, unless it was called the wrong way.
func ocm(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl-ocm", append(args, "--kubeconfig="+kubeconfig, "-v=9")...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || exit != nil && exit.ExitCode() == 2 {
		t.Errorf("%v: %v: %s", args, err, out.String())
	}
	return out.String()
}
