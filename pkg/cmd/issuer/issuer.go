package issuer

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/issuers"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	cmd := cli.Parent("issuer", "Manage trusted token issuers",
		newList(env), newShow(env), newAdd(env), newRemove(env), newPublish(env), newExport(env))
	cmd.Aliases = []string{"issuers"}
	return cmd
}

// known is what the rules and the hub say.
type known struct {
	flags  rules.Flags
	source *rules.Source
	list   []issuers.Issuer
}

// gather reads the rules that flags choose and, unless those are a file's, what the
// clusters publish.
func gather(ctx context.Context, env cli.Env, flags rules.Flags) (known, error) {
	source, err := flags.Open(ctx, env)
	if err != nil {
		return known{}, err
	}
	config, err := source.Config(ctx, source.Options())
	if err != nil {
		return known{}, err
	}
	var hub client.Reader
	if c := source.Hub(); c != nil {
		hub = c
	}
	list, err := issuers.Gather(ctx, hub, config)
	return known{flags: flags, source: source, list: list}, err
}

// find returns the issuer of a cluster.
func (k known) find(env cli.Env, cluster string) (issuers.Issuer, error) {
	for _, issuer := range k.list {
		if issuer.Cluster == cluster {
			return issuer, nil
		}
	}
	return issuers.Issuer{}, cli.NotFoundf("list them with: "+k.flags.Command(env, "issuer list")+"; a cluster that is joined publishes with: "+env.Elsewhere("issuer publish"),
		"no issuer of cluster %s is known", cluster)
}
