package issuer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/issuers"
)

type removeOptions struct {
	env       cli.Env
	changes   *cli.Changes
	published bool
	yes       cli.Yes
}

func newRemove(env cli.Env) *cobra.Command {
	o := &removeOptions{env: env, changes: cli.NewChanges(env)}
	cmd := &cobra.Command{
		Use:     "remove CLUSTER",
		Aliases: []string{"rm", "delete"},
		Short:   "Stop trusting the tokens of a cluster, on the hub",
		Long: `Delete the TokenExchangePolicy of a cluster, with its rules and the keys that
issuer add wrote: the next request with one of its tokens fails, unless the
rules of the TokenExchangeDefaults allow it.

What the cluster's agent publishes stays; --published deletes that too. An agent
that still publishes writes it again: switch it off with issuer publish --off on
the managed cluster, or deny the cluster.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: fleet.CompleteClusters(env),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.changes.End(o.run(cmd.Context(), args[0])) },
	}
	cmd.Flags().BoolVar(&o.published, "published", false, "also delete what the cluster's agent published")
	cli.AddYesFlag(cmd.Flags(), &o.yes)
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func (o *removeOptions) run(ctx context.Context, cluster string) error {
	source, err := (&rules.Flags{}).Open(ctx, o.env)
	if err != nil {
		return err
	}
	if err := o.env.Confirm(o.yes, fmt.Sprintf("Remove the rules and keys of cluster %s from the hub? Requests with its workloads' tokens fail from then on.", cluster)); err != nil {
		return err
	}
	removed, err := source.Remove(ctx, cluster)
	if err != nil {
		return err
	}
	if removed {
		if err := o.changes.AddLine(rules.PolicyRef(cluster), "deleted", "cluster "+cluster+" removed from the token exchange"); err != nil {
			return err
		}
	}
	published, err := o.withdraw(ctx, source.Hub(), cluster)
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
		return cli.Blockedf("on the managed cluster: "+o.env.Elsewhere("issuer publish --off")+"; or here: "+o.env.Command("issuer remove", cluster, "--published"),
			"cluster %s has no policy: its agent publishes the keys", cluster)
	}
	return cli.NotFoundf("list them with: "+o.env.Command("issuer list"), "no issuer of cluster %s is known", cluster)
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
		return true, o.changes.AddLine(cli.RefTo("configmap", m.Namespace, m.Name, time.Time{}), "deleted", "what cluster "+cluster+" published was deleted")
	}
	return false, nil
}
