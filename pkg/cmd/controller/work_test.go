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

// TestWorkRefusesBadFlags checks that bad values are named before anything is
// connected to.
func TestWorkRefusesBadFlags(t *testing.T) {
	t.Parallel()
	stored := t.TempDir()
	if err := os.WriteFile(filepath.Join(stored, "cluster-name"), []byte("C_1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ args, words string }{
		{"--spoke-cluster-name=C_1", "--spoke-cluster-name: invalid cluster name"},
		{"--spoke-cluster-name=c1 --workload-source-driver=mqtt", `"mqtt" is not available in this version: use kube`},
		{"--spoke-cluster-name=c1 --workload-source-config=", "--workload-source-config is missing"},
		{"--spoke-cluster-name=c1 --status-sync-interval=0s", "--status-sync-interval must be positive"},
		{"--spoke-cluster-name=c1 --appliedmanifestwork-eviction-grace-period=-1s", "must not be negative"},
		{"--spoke-cluster-name=c1 --max-json-raw-length=-1", "must not be negative"},
		{"--spoke-cluster-name=c1 --max-feedback-watch=-1", "must not be negative"},
		{"--spoke-cluster-name=c1 --workload-agent-workers=0", "--workload-agent-workers must be positive"},
		{"--spoke-cluster-name=c1 --feature-gates=Magic=true", "ExecutorValidatingCaches, RawFeedbackJsonString"},
		{"--spoke-cluster-name=c1 --feature-gates=ExecutorValidatingCaches=true", "/does/not/exist"},
		{"--spoke-cluster-name=c1 --cloudevents-client-id=x", "message broker"},
		{"--workload-source-config=/does/not/exist/kubeconfig", "--spoke-cluster-name is not set"},
		{"--workload-source-config=" + stored + "/kubeconfig", "stored next to the hub kubeconfig: invalid cluster name"},
		{"--spoke-cluster-name=c1 --terminate-on-files=x --kube-api-qps=50", "/does/not/exist"},
	} {
		cmd := controller.New()
		cmd.SetArgs(append([]string{"work", "--kubeconfig=/does/not/exist"}, strings.Fields(tc.args)...))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("%s: got %v, want %q", tc.args, err, tc.words)
		}
	}
}
