package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// quickStart are the commands of OCM's quick start
// (https://open-cluster-management.io/docs/getting-started/quick-start/) and of the scripts
// that are built on it: the join command is taken from the output with grep, and join --wait
// runs before accept.
const quickStart = `set -eu
joincmd=$(clusteradm init --wait --context "$CTX_HUB_CLUSTER" | grep clusteradm)
[ "$(echo "$joincmd" | wc -l)" = 1 ]
joincmd=$(clusteradm get token --context "$CTX_HUB_CLUSTER" | grep clusteradm)
$(echo ${joincmd} --force-internal-endpoint-lookup --wait --context "$CTX_MANAGED_CLUSTER" | sed "s/<cluster_name>/$MANAGED_CLUSTER_NAME/g")
kubectl get csr --context "$CTX_HUB_CLUSTER" | grep "$MANAGED_CLUSTER_NAME"
clusteradm accept --context "$CTX_HUB_CLUSTER" --clusters "$MANAGED_CLUSTER_NAME"
kubectl get managedcluster "$MANAGED_CLUSTER_NAME" --context "$CTX_HUB_CLUSTER"
`

// quickEnd detaches the cluster, as the quick start does.
const quickEnd = `set -eu
clusteradm unjoin --cluster-name "$MANAGED_CLUSTER_NAME" --context "$CTX_MANAGED_CLUSTER"
kubectl delete managedcluster "$MANAGED_CLUSTER_NAME" --context "$CTX_HUB_CLUSTER"
`

// TestQuickStart runs OCM's quick start with this program as clusteradm.
func TestQuickStart(t *testing.T) {
	const name = "quickstart"
	fleet.needs(t, "cluster4")
	fleet.leave(t, "cluster4", name)
	programs := t.TempDir()
	for as, program := range map[string]string{"clusteradm": binary(), "kubectl": kubectlPath()} {
		if err := os.Symlink(program, filepath.Join(programs, as)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(script string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "bash", "-c", script)
		c.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "KUBECONFIG="+fleet.kubeconfig,
			"CTX_HUB_CLUSTER=hub", "CTX_MANAGED_CLUSTER=cluster4", "MANAGED_CLUSTER_NAME="+name)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, script, strings.TrimSpace(string(out)))
		}
	}
	run(quickStart)
	awaitCondition(t, fleet.client(t, "hub"), name, clusterv1.ManagedClusterConditionAvailable)
	run(quickEnd)
	eventually(t, "the agent is gone", func(ctx context.Context) error {
		err := fleet.client(t, "cluster4").Get(ctx, client.ObjectKey{Name: names.AgentNamespace}, &corev1.Namespace{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("its namespace is there: %w", err)
		}
		return nil
	})
}
