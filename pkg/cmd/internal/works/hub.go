package works

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/delivery"
)

// Hub returns the hub that the connection flags choose, if it serves ManifestWorks.
func Hub(ctx context.Context, env cli.Env) (delivery.Hub, error) {
	c, err := env.Kube.Client()
	if err != nil {
		return delivery.Hub{}, err
	}
	return delivery.Hub{Client: c, Clock: env.Clock}, Require(ctx, env, c)
}

// Require is an error unless the cluster is a hub that serves ManifestWorks.
func Require(ctx context.Context, env cli.Env, c client.Client) error {
	if err := fleet.RequireHub(ctx, env, c); err != nil {
		return err
	}
	kind := schema.GroupVersion(workv1.GroupVersion).WithKind("ManifestWork")
	_, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if lookup.Gone(err) {
		return cli.Blockedf(env.Command("check hub"), "the hub does not serve ManifestWorks")
	}
	return err
}

// NotFound is the error about clusters without a work, nil without any.
func NotFound(env cli.Env, name string, clusters []string) error {
	if len(clusters) == 0 {
		return nil
	}
	return cli.NotFoundf("list the ManifestWorks with: "+env.Command("get works"), "no ManifestWork %s on %s", name, strings.Join(clusters, ", "))
}

// Ref refers to a work on a cluster in output.
func Ref(cluster, name string, created time.Time) cli.Ref {
	return cli.RefTo("manifestwork.work.open-cluster-management.io", cluster, name, created)
}

// SetRef refers to a ManifestWorkReplicaSet in output.
func SetRef(namespace, name string) cli.Ref {
	return cli.RefTo("manifestworkreplicaset.work.open-cluster-management.io", namespace, name, time.Time{})
}

// ValidateClusters is a usage error about the first name of a --clusters flag that is
// none of a cluster. It sorts the names and drops repeated ones.
func ValidateClusters(clusters *[]string) error {
	slices.Sort(*clusters)
	*clusters = slices.Compact(*clusters)
	for _, name := range *clusters {
		if err := names.ValidateClusterName(name); err != nil {
			return cli.Usagef("--clusters: %v", err)
		}
	}
	return nil
}

// AddClustersFlag registers --clusters.
func AddClustersFlag(env cli.Env, cmd *cobra.Command, clusters *[]string, usage string) {
	cmd.Flags().StringSliceVarP(clusters, "clusters", "c", nil, usage)
	cli.AliasFlag(cmd, "cluster", "clusters")
	_ = cmd.RegisterFlagCompletionFunc("clusters", fleet.CompleteClusters(env))
}

// AddNamespaceFlags registers --clusters, and what kubectl's users type for the namespaces
// of clusters.
func AddNamespaceFlags(env cli.Env, cmd *cobra.Command, clusters *[]string, usage string) {
	AddClustersFlag(env, cmd, clusters, usage)
	f := cmd.Flags()
	f.StringSliceVarP(clusters, "namespace", "n", nil, "The same as --clusters: the namespace of a cluster has its name")
	f.BoolP("all-namespaces", "A", false, "All clusters; the default")
	_ = cmd.RegisterFlagCompletionFunc("namespace", fleet.CompleteClusters(env))
	cmd.MarkFlagsMutuallyExclusive("clusters", "namespace", "all-namespaces")
}

// CompleteNames completes the names of works.
func CompleteNames(env cli.Env) cobra.CompletionFunc {
	return cli.CompleteObjects(env, func() client.ObjectList { return &workv1.ManifestWorkList{} })
}
