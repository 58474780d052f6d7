package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	hub     = "hub"
	cluster = "cluster1"
)

// patience bounds every wait; it is far more than anything takes.
const patience = 5 * time.Minute

// leaseSeconds is how often the agent tells the hub that it is there. The hub gives it up
// after five times as long.
const leaseSeconds = 10

func TestMain(m *testing.M) {
	if os.Getenv("E2E_ENVIRONMENT") != "kind" {
		fmt.Fprintln(os.Stderr, "these tests need the clusters of: make e2e-kind")
		os.Exit(1)
	}
	if err := join(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// join makes the hub a hub and has the cluster join it, unless both are done.
func join() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease := fmt.Sprintf(`{"spec":{"leaseDurationSeconds":%d}}`, leaseSeconds)
	for _, command := range [][]string{
		{"kubectl-ocm", "init", "--context", hub, "--wait", "--feature", "token-authorizer"},
		joinCommand("--publish-issuer"),
		{"kubectl", "--context", hub, "patch", "managedcluster", cluster, "--type=merge", "-p", lease},
	} {
		if out, err := run(ctx, command...); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
		}
	}
	return nil
}

// joinCommand has the cluster join, or repairs or changes what join installed.
func joinCommand(flags ...string) []string {
	return append([]string{
		"kubectl-ocm", "join", "--hub-context", hub, "--context", cluster, "--cluster-name", cluster, "--wait",
	}, flags...)
}

// run runs a command, whose program is one that make built, or on the PATH.
func run(ctx context.Context, command ...string) (string, error) {
	program := command[0]
	if path, err := filepath.Abs(filepath.Join("../../../bin", program)); err == nil {
		if _, err := os.Stat(path); err == nil {
			program = path
		}
	}
	out, err := exec.CommandContext(ctx, program, command[1:]...).CombinedOutput()
	return string(out), err
}

// must runs a command that has to succeed and returns what it printed.
func must(t *testing.T, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := run(ctx, command...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return out
}

// atEnd is for what a test does at its end, whatever it came to.
func atEnd(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.WithoutCancel(t.Context()), patience)
}

// restore runs a command at the end of the test, also of one that failed.
func restore(t *testing.T, command ...string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := atEnd(t)
		defer cancel()
		if out, err := run(ctx, command...); err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(command, " "), err, out)
		}
	})
}

// kubectl runs kubectl on a cluster.
func kubectl(t *testing.T, context string, args ...string) string {
	t.Helper()
	return must(t, append([]string{"kubectl", "--context", context}, args...)...)
}

// apply applies a manifest to the hub until the end of the test.
func apply(t *testing.T, manifest string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, hub, "apply", "-f", path)
	restore(t, "kubectl", "--context", hub, "delete", "--ignore-not-found", "-f", path)
}

// awaitAvailable waits until the hub thinks of the cluster's availability what status says.
func awaitAvailable(t *testing.T, status string) {
	t.Helper()
	kubectl(t, hub, "wait", "managedcluster/"+cluster, "--timeout="+patience.String(),
		"--for=condition=ManagedClusterConditionAvailable="+status)
}

// eventually repeats check until it returns nil.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		case <-tick.C:
		}
	}
}

// node is the container that is the one node of a cluster.
func node(t *testing.T, context string) string {
	t.Helper()
	name := kubectl(t, context, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")
	if name == "" || strings.Contains(name, " ") {
		t.Fatal("not one node: ", name)
	}
	return name
}

// wantFailure runs a command that has to fail, and returns what it printed.
func wantFailure(t *testing.T, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := run(ctx, command...)
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%s: %v, want another exit code\n%s", strings.Join(command, " "), err, out)
	}
	return out
}
