package nodes_test

import (
	"fmt"
	"strings"
	"testing"
)

// work is a ManifestWork with a ConfigMap of the same name.
func work(name string) string {
	return fmt.Sprintf(`
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  workload:
    manifests:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {namespace: default, name: %[2]s}
`, cluster, name)
}

// wantApplied waits until what the hub wants is on the cluster.
func wantApplied(t *testing.T, name string) {
	t.Helper()
	kubectl(t, cluster, "wait", "configmap/"+name, "-n", "default", "--for=create", "--timeout="+patience.String())
}

// wantLost waits until the hub has given the cluster up, and says so.
func wantLost(t *testing.T) {
	t.Helper()
	awaitAvailable(t, "Unknown")
	out := wantFailure(t, "kubectl-ocm", "check", "cluster", cluster, "--context", hub)
	if !strings.Contains(out, "lease") {
		t.Errorf("check does not tell that the agent stopped renewing its lease:\n%s", out)
	}
}

// wantRecovered waits until all is as it was, without anybody's doing.
func wantRecovered(t *testing.T) {
	t.Helper()
	awaitAvailable(t, "True")
	eventually(t, "check finds nothing wrong", func() error {
		out, err := run(t.Context(), "kubectl-ocm", "check", "cluster", cluster, "--context", hub)
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
}

// TestPausedManagedCluster stops all processes of a managed cluster, for longer than a
// certificate of its agent is good.
func TestPausedManagedCluster(t *testing.T) {
	awaitAvailable(t, "True")
	container := node(t, cluster)
	resume := pause(t, container)
	wantLost(t)
	const name = "while-paused"
	apply(t, work(name))
	resume()
	wantRecovered(t)
	wantApplied(t, name)
}

// TestPausedHub stops all processes of the hub. Whatever it wanted before stays on the
// cluster, and what it wants afterwards gets there.
func TestPausedHub(t *testing.T) {
	awaitAvailable(t, "True")
	const before, after = "before-the-pause", "after-the-pause"
	apply(t, work(before))
	wantApplied(t, before)
	restarts := agentRestarts(t)
	resume := pause(t, node(t, hub))
	// What hangs is noticed later than what is refused.
	eventually(t, "check finds that the agent does not reach the hub", func() error {
		out, err := run(t.Context(), "kubectl-ocm", "check", "agent", "--context", cluster)
		if err == nil || !strings.Contains(out, "HubConnectionDegraded") {
			return fmt.Errorf("it does not: %s", out)
		}
		return nil
	})
	kubectl(t, cluster, "get", "configmap", before, "-n", "default")
	resume()
	wantRecovered(t)
	apply(t, work(after))
	wantApplied(t, after)
	if now := agentRestarts(t); now != restarts {
		t.Errorf("the agents restarted: %s became %s", restarts, now)
	}
}

// TestCutNetwork drops what a managed cluster sends to the hub.
func TestCutNetwork(t *testing.T) {
	awaitAvailable(t, "True")
	restarts := agentRestarts(t)
	heal := cut(t)
	wantLost(t)
	const name = "while-cut"
	apply(t, work(name))
	heal()
	wantRecovered(t)
	wantApplied(t, name)
	if now := agentRestarts(t); now != restarts {
		t.Errorf("the agents restarted: %s became %s", restarts, now)
	}
}

// TestRestartedNodes starts the nodes of a managed cluster and of the hub again.
func TestRestartedNodes(t *testing.T) {
	for _, context := range []string{cluster, hub} {
		t.Run(context, func(t *testing.T) {
			awaitAvailable(t, "True")
			must(t, "docker", "restart", node(t, context))
			eventually(t, "the API server answers", func() error {
				_, err := run(t.Context(), "kubectl", "--context", context, "get", "--raw", "/readyz")
				return err
			})
			name := "after-the-restart-of-" + context
			eventually(t, "the hub takes works", func() error {
				_, err := run(t.Context(), "kubectl", "--context", hub, "get", "manifestworks", "-n", cluster)
				return err
			})
			apply(t, work(name))
			wantApplied(t, name)
			wantRecovered(t)
		})
	}
}

// pause stops the processes of a container until the returned function is called.
func pause(t *testing.T, container string) func() {
	t.Helper()
	return until(t, []string{"docker", "pause", container}, []string{"docker", "unpause", container})
}

// until runs a command now, and another one when the returned function is called, at the
// end of the test at the latest.
func until(t *testing.T, now, then []string) func() {
	t.Helper()
	must(t, now...)
	done := false
	t.Cleanup(func() {
		if done {
			return
		}
		ctx, cancel := atEnd(t)
		defer cancel()
		_, _ = run(ctx, then...)
	})
	return func() {
		done = true
		must(t, then...)
	}
}

// cut drops what comes to the hub from the managed cluster until the returned function is
// called.
func cut(t *testing.T) func() {
	t.Helper()
	address := kubectl(t, cluster, "get", "nodes", "-o", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`)
	rule := func(action string) []string {
		return []string{"docker", "exec", node(t, hub), "iptables", action, "INPUT", "-s", address, "-j", "DROP"}
	}
	return until(t, rule("-I"), rule("-D"))
}

// agentRestarts tells the Pods of the agents from others, and how often they restarted.
func agentRestarts(t *testing.T) string {
	t.Helper()
	return kubectl(t, cluster, "get", "pods", "-n", "open-cluster-management-agent", "-o",
		"jsonpath={range .items[*]}{.metadata.name}:{.status.containerStatuses[*].restartCount} {end}")
}
