package legacytokens

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/legacytoken"
)

// forcedVerb is a verb that can be forced on Secrets that are named.
type forcedVerb struct {
	verb

	force bool
}

func (f *forcedVerb) addTo(cmd *cobra.Command, usage string) {
	f.verb.addTo(cmd)
	cmd.Flags().BoolVar(&f.force, "force", false, usage)
	cmd.MarkFlagsMutuallyExclusive("force", "all")
}

// one returns the task of a command that changes the token Secret itself.
func one(t *legacytoken.Token, plan legacytoken.Plan, act func(context.Context) error) ([]legacytoken.Task, error) {
	return []legacytoken.Task{legacytoken.NewTask(t, plan, act)}, nil
}

func newQuarantine(env cli.Env) *cobra.Command {
	v := &forcedVerb{verb: verb{selection: selection{env: env}, done: "quarantined"}}
	v.tasks = func(_ context.Context, inventory *legacytoken.Inventory, t *legacytoken.Token) ([]legacytoken.Task, error) {
		return one(t, inventory.PlanQuarantine(t, v.force), func(ctx context.Context) error {
			return legacytoken.Quarantine(ctx, v.cluster, t, env.Clock.Now())
		})
	}
	v.ready = v.quarantines
	cmd := &cobra.Command{
		Use:   "quarantine {NAMESPACE/NAME... | --all}",
		Short: "Have the API server refuse tokens; restore undoes it",
		Long: `Set the label kubernetes.io/legacy-token-invalid-since to today: the API server
refuses the token while the Secret stays. Prints what would be done unless
--dry-run=none is given.

Refused are tokens that a Pod, workload or pull secret uses, that were used less
than --recent ago, or of which that is not known because you may not list all
workloads or because use has not been recorded for as long. --force quarantines
them if they are named.

The exit code is 3 if a token is refused.`,
		Example: fmt.Sprintf(`  # See what could be quarantined, then do it
  %[1]s legacy-tokens quarantine -A --all --verdict unused
  %[1]s legacy-tokens quarantine -A --all --verdict unused --dry-run=none`, env.Name),
	}
	v.addTo(cmd, "also quarantine named tokens that may be in use")
	return cmd
}

// quarantines checks that the API server refuses tokens with the label.
func (f *forcedVerb) quarantines() error {
	config, err := f.env.Kube.Config()
	if err != nil {
		return err
	}
	server, err := lookup.ServerVersion(config)
	if err != nil {
		return err
	}
	if !legacytoken.Quarantines(server.GitVersion) {
		return cli.Blockedf("", "an API server of version %s accepts tokens that are quarantined; that needs Kubernetes 1.29", server.GitVersion)
	}
	return nil
}

func newRestore(env cli.Env) *cobra.Command {
	v := &verb{selection: selection{env: env}, done: "restored"}
	v.tasks = func(_ context.Context, inventory *legacytoken.Inventory, t *legacytoken.Token) ([]legacytoken.Task, error) {
		return one(t, inventory.PlanRestore(t), func(ctx context.Context) error {
			return legacytoken.Restore(ctx, v.cluster, t)
		})
	}
	cmd := &cobra.Command{
		Use:   "restore {NAMESPACE/NAME... | --all}",
		Short: "Have the API server accept quarantined tokens again",
		Long: `Remove the label kubernetes.io/legacy-token-invalid-since: the API server
accepts the token again. Prints what would be done unless --dry-run=none is
given.

A Secret that was deleted comes back from its backup: create it from the file
with kubectl, then restore it.`,
	}
	v.addTo(cmd)
	return cmd
}
