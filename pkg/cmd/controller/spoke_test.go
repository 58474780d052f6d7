package controller_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/controller"
)

// TestSpokeRefusesBadFlags checks that a bad value is named before anything is
// connected to, all of them at once.
func TestSpokeRefusesBadFlags(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		args  []string
		words []string
	}{
		{name: "cluster name", args: []string{"--spoke-cluster-name=C_1"}, words: []string{"invalid cluster name"}},
		{name: "old cluster name flag", args: []string{"--cluster-name=C_1"}, words: []string{"invalid cluster name"}},
		{name: "driver", args: []string{"--registration-auth=foo"}, words: []string{"csr, awsirsa, grpc"}},
		{name: "driver to come", args: []string{"--registration-auth=aws-irsa"}, words: []string{"not available in this version"}},
		{name: "URL", args: []string{"--spoke-external-server-urls=http://a"}, words: []string{"https URL"}},
		{name: "expiration", args: []string{"--client-cert-expiration-seconds=600"}, words: []string{"3600"}},
		{name: "period", args: []string{"--cluster-healthcheck-period=0s"}, words: []string{"must be positive"}},
		{name: "claims", args: []string{"--max-custom-cluster-claims=-1"}, words: []string{"must not be negative"}},
		{name: "annotation", args: []string{"--cluster-annotations=a=b"}, words: []string{"agent.open-cluster-management.io/"}},
		{name: "label", args: []string{"--cluster-labels=a=b/c"}, words: []string{"invalid cluster labels", "b/c"}},
		{name: "secrets", args: []string{"--hub-kubeconfig-secret=bootstrap-hub-kubeconfig"}, words: []string{"different Secrets"}},
		{name: "several hubs", args: []string{"--bootstrap-kubeconfigs=a,b"}, words: []string{"not available"}},
		{name: "add-on driver", args: []string{"--addon-kubeclient-registration-auth=x"}, words: []string{"csr, token"}},
		{name: "add-on token life", args: []string{"--addon-token-expiration-seconds=1"}, words: []string{"600"}},
		{name: "two at once", args: []string{"--feature-gates=Foo=true", "--registration-auth=foo"}, words: []string{"unknown feature gate", "unknown registration driver"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cmd := controller.New()
			cmd.SetArgs(append([]string{"spoke", "--kubeconfig=/does/not/exist"}, tc.args...))
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			err := cmd.ExecuteContext(t.Context())
			for _, word := range tc.words {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("got %v, want %q in it", err, word)
				}
			}
		})
	}
}

// TestIssuerRefusesBadFlags does the same for the publisher that runs by itself.
func TestIssuerRefusesBadFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	insecure := filepath.Join(dir, "insecure")
	if err := os.WriteFile(insecure, []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: 'https://a', insecure-skip-tls-verify: true}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ args, words string }{
		{"", "--hub-kubeconfig is missing"},
		{"--hub-kubeconfig=x", "invalid cluster name"},
		{"--hub-kubeconfig=x --cluster-name=c1", "--service-account is missing"},
		{"--hub-kubeconfig=/does/not/exist --cluster-name=c1 --service-account=a", "--hub-kubeconfig: "},
		{"--hub-kubeconfig=" + insecure + " --cluster-name=c1 --service-account=a", "does not verify the hub"},
	} {
		cmd := controller.New()
		cmd.SetArgs(append([]string{"issuer"}, strings.Fields(tc.args)...))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("%s: got %v, want %q", tc.args, err, tc.words)
		}
	}
}
