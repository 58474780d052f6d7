package takeover_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// patience bounds every wait; it is far more than anything takes.
const patience = await.Patience

// fleet is a hub and a managed cluster.
type fleet struct{ binary, dir, kubeconfig string }

// images are those of OCM, and of what a work deploys.
func images() []string {
	const registry = "registry.example.com/open-cluster-management/"
	return []string{registry + "registration-operator", registry + "registration", registry + "work", registry + "placement", registry + "addon-manager", "example/workload"}
}

// start starts local clusters where the test binary is every image of OCM.
func start(t *testing.T) *fleet {
	t.Helper()
	controlplane.Localkube(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := filepath.Abs("../../bin/kubectl-ocm")
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{binary: binary, dir: t.TempDir()}
	release, err := controlplane.Guard(f.binary, "local", "down", "--dir", f.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer release()
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), f.binary, "local", "down", "--dir", f.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("taking the clusters down: %v: %s", err, out)
		}
	})
	args := []string{"local", "up", "--dir", f.dir, "--managed", "1"}
	for _, image := range images() {
		args = append(args, "--image", image+"="+self)
	}
	f.must(t, args...)
	f.kubeconfig = strings.TrimSpace(f.must(t, "local", "kubeconfig", "--dir", f.dir, "--path"))
	return f
}

// result is how a run of the command ended.
type result struct {
	stdout, stderr string
	code           int
}

func (f *fleet) run(t *testing.T, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), f.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// interrupted runs a command again and again, each time killed two lines of its progress
// later than before, until it ends by itself. After each of them, check is called.
func (f *fleet) interrupted(t *testing.T, check func(), args ...string) {
	t.Helper()
	const few = 3
	for lines := 1; ; lines += 2 {
		said, err := f.runUntil(t, lines, args...)
		check()
		switch {
		case err == nil:
			if lines/2 < few {
				t.Errorf("killed %d times only, and then: %s", lines/2, said)
			}
			return
		case strings.Count(said, "\n") < lines:
			t.Fatalf("kubectl ocm %s: %v: %s", strings.Join(args, " "), err, said)
		}
	}
}

// runUntil runs the command until it has said so many lines, and kills it.
func (f *fleet) runUntil(t *testing.T, lines int, args ...string) (said string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), f.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig)
	progress, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for scanner := bufio.NewScanner(progress); scanner.Scan(); {
		said += scanner.Text() + "\n"
		if strings.Count(said, "\n") == lines {
			_ = cmd.Process.Kill()
		}
	}
	return said, cmd.Wait()
}

// must runs the command, which has to succeed, and returns what it printed.
func (f *fleet) must(t *testing.T, args ...string) string {
	t.Helper()
	r := f.run(t, args...)
	if r.code != 0 {
		t.Fatalf("kubectl ocm %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// client is an administrator's.
func (f *fleet) client(t *testing.T, cluster string) client.Client {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: f.kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: cluster}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	await.Success(t, patience, what, try)
}
