package fleet

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
)

// RequireHub is an error unless the cluster is a hub that knows managed clusters.
func RequireHub(ctx context.Context, env cli.Env, c client.Client) error {
	served, err := lookup.Serves(c, schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster"))
	if served || err != nil {
		return err
	}
	if err := RequireInit(ctx, env, c); err != nil {
		return err
	}
	notReady := diagnose.NotReady(env)
	return cli.Blockedf(notReady.Try, "%s", notReady.Message)
}

// RequireInit is an error unless init was run on the cluster. On a managed cluster it
// names the contexts of the kubeconfig that lead to its hub.
func RequireInit(ctx context.Context, env cli.Env, c client.Client) error {
	hub, err := lookup.IsHub(c)
	if hub || err != nil {
		return err
	}
	managed, err := lookup.IsManaged(c)
	if !managed || err != nil {
		return wrongCluster(env, "a hub", "", "run "+env.Command("init")+" first, or choose the hub with --context")
	}
	try := "choose the hub with --context"
	if contexts := hubContexts(ctx, env, c); len(contexts) > 0 {
		try = "choose its hub with --context " + strings.Join(contexts, ", or with --context ")
	}
	return wrongCluster(env, "a hub", "; it is a managed cluster", try)
}

// hubContexts are the contexts of the kubeconfig whose server is the address at which the
// agent of a managed cluster joined its hub. Who may not read that address, which is in a
// Secret, gets none.
func hubContexts(ctx context.Context, env cli.Env, c client.Client) []string {
	bootstrap, err := agent.StoredBootstrap(ctx, c)
	if err != nil || bootstrap == nil {
		return nil
	}
	return env.Kube.ContextsOf(bootstrap.Cluster.Server)
}

// RequireManaged is an error unless the cluster is a managed cluster.
func RequireManaged(env cli.Env, c client.Client) error {
	served, err := lookup.IsManaged(c)
	if served || err != nil {
		return err
	}
	is := ""
	if hub, err := lookup.IsHub(c); err == nil && hub {
		is = "; it is a hub"
	}
	return wrongCluster(env, "a managed cluster", is, "run "+env.Command("join")+" first, or choose the managed cluster with --context")
}

// wrongCluster names the cluster and what it is instead, if that is known.
func wrongCluster(env cli.Env, wanted, is, try string) error {
	name, server := env.Kube.Target()
	return cli.Blockedf(try, "the cluster of context %q (%s) is not %s%s", name, server, wanted, is)
}

// CompleteClusters completes the names of managed clusters, also behind commas.
func CompleteClusters(env cli.Env) cobra.CompletionFunc {
	return cli.CompleteObjects(env, func() client.ObjectList { return &clusterv1.ManagedClusterList{} })
}
