package pullsecrets

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/refresh"
)

type refreshOptions struct {
	env     cli.Env
	changes *cli.Changes
	wait    cli.Wait
	all     bool
}

func newRefresh(env cli.Env) *cobra.Command {
	o := &refreshOptions{env: env, changes: cli.NewChanges(env), wait: cli.Wait{Enabled: true}}
	cmd := &cobra.Command{
		Use:   "refresh NAMESPACE/SERVICEACCOUNT... | --all",
		Short: "Have the controller replace tokens now",
		Long: `Have the controller replace the tokens of pull secrets now, in place and without
a gap, and wait until it has.

The request is an annotation on the Secret, so it is not lost when the
controller restarts, and repeating it changes nothing. A Secret gets at most one
token a minute, so that a writer that changes it again and again does not flood
the API server: a refresh soon after another one takes up to a minute. All
Secrets get at most --refresh-qps tokens a second.`,
		Example: fmt.Sprintf(`  # One ServiceAccount
  %[1]s pull-secrets refresh shop/app

  # All, after the registry stopped accepting older tokens
  %[1]s pull-secrets refresh --all --timeout 30m`, env.Name),
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.changes.End(o.run(cmd.Context(), args)) },
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "All pull secrets")
	o.wait.AddTo(cmd, "wait until the tokens are replaced")
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func (o *refreshOptions) run(ctx context.Context, args []string) error {
	accounts, err := o.accounts(args)
	if err != nil {
		return err
	}
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	c, err := o.env.Kube.Client()
	if err != nil {
		return err
	}
	chosen, err := o.chosen(ctx, c, accounts)
	if err != nil {
		return err
	}
	if o.env.Kube.DryRun() != cli.DryRunClient {
		if err := refresh.Request(ctx, c, chosen); err != nil {
			return err
		}
	}
	if o.env.Kube.DryRun() != cli.DryRunNone || !o.wait.Enabled {
		return o.print(chosen, "requested")
	}
	err = o.env.Progress().Step(ctx, "Waiting for the controller", func(ctx context.Context, say cli.Say) error {
		return refresh.Await(ctx, c, o.env.Clock, chosen, func(done int) { say("%d of %d pull secrets are refreshed", done, len(chosen)) })
	})
	if err != nil {
		return o.wait.TimedOut(err, "the controller to replace the tokens; the request stays", "see whether it works: "+o.env.Command("pull-secrets check"))
	}
	return o.print(chosen, "refreshed")
}

// accounts reads the arguments.
func (o *refreshOptions) accounts(args []string) ([]types.NamespacedName, error) {
	if (len(args) > 0) == o.all {
		return nil, cli.Usagef("name ServiceAccounts as NAMESPACE/NAME, or use --all")
	}
	var accounts []types.NamespacedName
	for _, arg := range args {
		account, ok := cli.NamespacedName(arg)
		if !ok {
			return nil, cli.Usagef("%q: write it as NAMESPACE/SERVICEACCOUNT", arg)
		}
		accounts = append(accounts, account)
	}
	return accounts, nil
}

// chosen returns the pull secrets of the ServiceAccounts that are named, or all.
func (o *refreshOptions) chosen(ctx context.Context, c client.WithWatch, accounts []types.NamespacedName) ([]inventory.PullSecret, error) {
	preset, err := presetOf(ctx, c)
	if err != nil {
		return nil, err
	}
	if o.all {
		return refresh.All(ctx, c, preset, o.env.Clock.Now())
	}
	chosen, err := refresh.Of(ctx, c, accounts, preset, o.env.Clock.Now())
	if missing, ok := errors.AsType[*refresh.NoPullSecretError](err); ok {
		return nil, cli.NotFoundf("list them with: "+o.env.Command("pull-secrets list -A"), "%v", missing)
	}
	return chosen, err
}

func (o *refreshOptions) print(chosen []inventory.PullSecret, what string) error {
	for _, secret := range chosen {
		if err := o.changes.AddLine(ref(secret), what, fmt.Sprintf("secret %s/%s %s", secret.Namespace, secret.Name, what)); err != nil {
			return err
		}
	}
	return nil
}
