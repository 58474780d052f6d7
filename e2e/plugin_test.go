package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlugin runs the command the ways in which it is installed: as a plugin of
// a real kubectl, with kubectl completing its arguments, and as clusteradm.
func TestPlugin(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	for _, name := range []string{"kubectl-ocm", "kubectl_complete-ocm", "clusteradm"} {
		if err := os.Symlink(binary(), filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	kubectl, err := filepath.Abs("../bin/kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kubectl); err != nil {
		t.Fatalf("build it first, with make localkube: %v", err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "PATH="+path, "KUBECONFIG="+fleet.kubeconfig)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{kubectl, []string{"ocm", "version", "--context", "hub"}, []string{"0.1.0", "v1."}},
		{kubectl, []string{"ocm", "get", "clusters", "--context", "hub"}, []string{"cluster1", "cluster2"}},
		{kubectl, []string{"__complete", "ocm", "acc"}, []string{"accept"}},
		{kubectl, []string{"__complete", "ocm", "accept", "--context", "hub", ""}, []string{"cluster1"}},
		{filepath.Join(path, "clusteradm"), []string{"accept", "--help"}, []string{"clusteradm accept cluster1"}},
	} {
		out := run(tc.name, tc.args...)
		for _, want := range tc.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s %s: no %q in\n%s", filepath.Base(tc.name), strings.Join(tc.args, " "), want, out)
			}
		}
	}
}
