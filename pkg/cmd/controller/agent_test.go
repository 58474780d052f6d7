//go:build linux

package controller_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/controller"
)

// TestAgentRefusesBadFlags checks that a bad value is named before anything is
// connected to, all of them at once.
func TestAgentRefusesBadFlags(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		args  []string
		words []string
	}{
		{name: "cluster name", args: []string{"--spoke-cluster-name=C_1"}, words: []string{"invalid cluster name"}},
		{name: "old cluster name flag", args: []string{"--cluster-name=C_1"}, words: []string{"invalid cluster name"}},
		{name: "driver", args: []string{"--registration-auth=foo"}, words: []string{"csr, awsirsa"}},
		{name: "driver to come", args: []string{"--registration-auth=grpc"}, words: []string{"not available in this version"}},
		{name: "AWS without ARNs", args: []string{"--registration-auth=aws-irsa"}, words: []string{"--hub-cluster-arn: the registration driver awsirsa needs it", "--managed-cluster-arn"}},
		{name: "no ARN", args: []string{"--registration-auth=awsirsa", "--hub-cluster-arn=hub", "--managed-cluster-arn=arn:aws:eks:us-west-2:222222222222:cluster/c1"}, words: []string{"--hub-cluster-arn", "is not the ARN of an EKS cluster"}},
		{
			name: "two partitions", words: []string{"across partitions"},
			args: []string{"--registration-auth=awsirsa", "--hub-cluster-arn=arn:aws-us-gov:eks:us-gov-west-1:111111111111:cluster/hub", "--managed-cluster-arn=arn:aws:eks:us-west-2:222222222222:cluster/c1"},
		},
		{
			name: "identifier of others", words: []string{"is not the identifier of these two clusters"},
			args: []string{"--registration-auth=awsirsa", "--hub-cluster-arn=arn:aws:eks:us-west-2:111111111111:cluster/hub", "--managed-cluster-arn=arn:aws:eks:us-west-2:222222222222:cluster/c1", "--managed-cluster-role-suffix=0123456789abcdef0123456789abcdef"},
		},
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
		{name: "unknown gate", args: []string{"--feature-gates=Clusterclaim=true"}, words: []string{"AddonManagement, ClusterClaim"}},
		{name: "gate without a value", args: []string{"--feature-gates=ClusterClaim"}, words: []string{"Name=true or Name=false"}},
		{name: "gate of several hubs", args: []string{"--feature-gates=MultipleHubs=true"}, words: []string{"not available in this version"}},
		{name: "gate of properties", args: []string{"--feature-gates=ClusterProperty=true"}, words: []string{"not available in this version"}},
		{name: "two at once", args: []string{"--feature-gates=Foo=true", "--registration-auth=foo"}, words: []string{"unknown feature gate", "unknown registration driver"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cmd := controller.New()
			cmd.SetArgs(append([]string{"agent", "--kubeconfig=/does/not/exist"}, tc.args...))
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
	marker, runs := filepath.Join(dir, "ran"), filepath.Join(dir, "runs")
	program := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n" +
		"users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: touch, args: [" + marker + "]}}}]\n"
	if err := os.WriteFile(runs, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ args, words string }{
		{"", "--hub-kubeconfig is missing"},
		{"--hub-kubeconfig=x", "invalid cluster name"},
		{"--hub-kubeconfig=x --cluster-name=c1", "--service-account is missing"},
		{"--hub-kubeconfig=/does/not/exist --cluster-name=c1 --service-account=a", "--hub-kubeconfig: "},
		{"--hub-kubeconfig=" + insecure + " --cluster-name=c1 --service-account=a", "does not verify the hub"},
		{"--hub-kubeconfig=" + runs + " --cluster-name=c1 --service-account=a", `it runs the program "touch"`},
	} {
		cmd := controller.New()
		cmd.SetArgs(append([]string{"issuer"}, strings.Fields(tc.args)...))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("%s: got %v, want %q", tc.args, err, tc.words)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the program of a mounted kubeconfig ran")
	}
}
