package issuer

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/issuers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/truststore"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	cmd := cli.Parent("issuer", "See and change whose workloads' tokens the hub believes",
		newList(env), newShow(env), newAdd(env), newRemove(env), newPublish(env), newExport(env))
	cmd.Aliases = []string{"issuers"}
	return cmd
}

// known is what the trust store and the hub say.
type known struct {
	store *truststore.Store
	list  []issuers.Issuer
}

// gather reads the trust store that flags choose and, unless that is a file, what
// the clusters publish.
func gather(ctx context.Context, env cli.Env, flags truststore.Flags) (known, error) {
	store, err := flags.Open(env)
	if err != nil {
		return known{}, err
	}
	doc, err := store.Read(ctx)
	if err != nil {
		return known{}, err
	}
	config, err := doc.Config(store.Options())
	if err != nil && len(doc.Clusters()) > 0 {
		return known{}, &cli.Explained{
			Problem: store.String() + " cannot be used", Cause: err,
			Try: env.Name + " exchange policy lint shows what is wrong",
		}
	}
	var hub client.Reader
	if c := store.Hub(); c != nil {
		hub = c
	}
	list, err := issuers.Gather(ctx, hub, config)
	return known{store: store, list: list}, err
}

// find returns the issuer of a cluster.
func (k known) find(env cli.Env, cluster string) (issuers.Issuer, error) {
	for _, issuer := range k.list {
		if issuer.Cluster == cluster {
			return issuer, nil
		}
	}
	return issuers.Issuer{}, cli.NotFoundf("list them with: "+env.Name+" issuer list; a cluster that is joined publishes with: "+env.Name+" issuer publish",
		"no issuer of cluster %s is known", cluster)
}
