//go:build upgrade

package upgrade_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const (
	// patience bounds every wait; it is far more than anything takes.
	patience = await.Patience
	// certificateLifetime lets every agent renew while a test waits for it.
	certificateLifetime = time.Minute
	// clusters is how many managed clusters there are.
	clusters = 3
	// previousImage is what the earlier release runs as.
	previousImage = "kubectl-ocm/previous"
)

// release is a command, and the image of what it installs.
type release struct{ binary, image string }

// releases are the earlier release and this one.
func releases(t *testing.T) (previous, current release) {
	t.Helper()
	return release{built(t, "previous/kubectl-ocm"), previousImage + ":v" + buildinfo.Version},
		release{built(t, "kubectl-ocm"), buildinfo.DefaultImage()}
}

// built is a program that make built.
func built(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(path); err != nil {
		t.Fatalf("%v; run: make test-upgrade", err)
	}
	return path
}

// fleet is a hub and managed clusters.
type fleet struct{ dir, kubeconfig string }

// start starts local clusters that have the images of both releases.
func start(t *testing.T, previous, current release) *fleet {
	t.Helper()
	f := &fleet{dir: t.TempDir()}
	release, err := controlplane.Guard(current.binary, "local", "down", "--dir", f.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer release()
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), current.binary, "local", "down", "--dir", f.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("taking the clusters down: %v: %s", err, out)
		}
	})
	f.must(t, current, "local", "up", "--dir", f.dir, "--managed", strconv.Itoa(clusters), "--certificate-lifetime", certificateLifetime.String(),
		"--image", previousImage+"="+previous.binary, "--image", "kubectl-ocm/heartbeat-addon="+built(t, "heartbeat-addon"))
	f.kubeconfig = strings.TrimSpace(f.must(t, current, "local", "kubeconfig", "--dir", f.dir, "--path"))
	return f
}

// result is how a run of a command ended.
type result struct {
	stdout, stderr string
	code           int
}

// run runs the command of a release.
func (f *fleet) run(t *testing.T, r release, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), r.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs the command of a release, which has to succeed, and returns what it printed.
func (f *fleet) must(t *testing.T, r release, args ...string) string {
	t.Helper()
	got := f.run(t, r, args...)
	if got.code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s%s", r.image, strings.Join(args, " "), got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// initArgs installs a hub, or changes what is installed to a release.
func initArgs(r release) []string {
	return []string{"init", "--context", "hub", "--wait", "--image", r.image}
}

// joinArgs registers a cluster, or changes its agent to a release.
func joinArgs(r release, cluster string) []string {
	return []string{
		"join", "--hub-context", "hub", "--context", cluster, "--cluster-name", cluster, "--wait", "--image", r.image,
		"--addon-kubeclient-registration-auth", "token",
	}
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
