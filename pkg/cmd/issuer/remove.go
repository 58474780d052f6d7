package issuer

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/issuers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/truststore"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

type removeOptions struct {
	env       cli.Env
	store     truststore.Flags
	published bool
}

func newRemove(env cli.Env) *cobra.Command {
	o := &removeOptions{env: env}
	cmd := &cobra.Command{
		Use:     "remove CLUSTER",
		Aliases: []string{"rm", "delete"},
		Short:   "Stop believing the tokens of a cluster, on the hub",
		Long: `Remove a cluster from the token authorizer's configuration, with its rules: the
next request with one of its tokens fails.

What the cluster's agent publishes stays; --published deletes that too. An agent
that still publishes writes it again: switch it off with issuer publish --off on
the managed cluster, or deny the cluster.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: fleet.CompleteClusters(env),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.store.AddTo(cmd)
	cmd.Flags().BoolVar(&o.published, "published", false, "also delete what the cluster's agent published")
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func (o *removeOptions) run(ctx context.Context, cluster string) error {
	if o.published && o.store.File != "" {
		return cli.Usagef("--published is about the hub: leave out --clusters-config")
	}
	store, err := o.store.Open(o.env)
	if err != nil {
		return err
	}
	removed := false
	if _, _, err = store.Edit(ctx, func(d *truststore.Document) error {
		removed = d.RemoveCluster(cluster)
		return nil
	}); err != nil {
		return err
	}
	if removed {
		if _, err := fmt.Fprintf(o.env.Out, "cluster %s removed from %s%s\n", cluster, store, o.env.Kube.DryRunSuffix()); err != nil {
			return err
		}
	}
	if store.Hub() == nil {
		return o.found(cluster, removed, false)
	}
	published, err := o.withdraw(ctx, store.Hub(), cluster)
	if err != nil {
		return err
	}
	return o.found(cluster, removed, published)
}

func (o *removeOptions) found(cluster string, removed, published bool) error {
	switch {
	case removed:
		return nil
	case published && o.published:
		return nil
	case published:
		return cli.Blockedf("on the managed cluster: "+o.env.Name+" issuer publish --off; or here: "+o.env.Name+" issuer remove "+cluster+" --published",
			"cluster %s is in no configuration: its agent publishes the keys", cluster)
	}
	return cli.NotFoundf("list them with: "+o.env.Name+" issuer list", "no issuer of cluster %s is known", cluster)
}

// withdraw deletes what a cluster published, if that is wanted, and reports
// whether there was anything.
func (o *removeOptions) withdraw(ctx context.Context, hub client.Client, cluster string) (bool, error) {
	list, err := issuers.Published(ctx, hub)
	if err != nil {
		return false, err
	}
	for _, issuer := range list {
		if issuer.Cluster != cluster || issuer.PublishedAt == nil && issuer.Issuer == "" {
			continue
		}
		if !o.published {
			return true, nil
		}
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.IssuerConfigMap}}
		err := client.IgnoreNotFound(hub.Delete(ctx, m))
		if _, refused := errors.AsType[*cli.WriteRefusedError](err); err != nil && !refused {
			return true, err
		}
		_, err = fmt.Fprintf(o.env.Out, "what cluster %s published was deleted%s\n", cluster, o.env.Kube.DryRunSuffix())
		return true, err
	}
	return false, nil
}
