package pullsecrets

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/inventory"
)

// refreshInterval is how often a pull secret is looked at that is waited for.
const refreshInterval = time.Second

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
		if err := request(ctx, c, chosen); err != nil {
			return err
		}
	}
	if o.env.Kube.DryRun() != cli.DryRunNone || !o.wait.Enabled {
		return o.print(chosen, "requested")
	}
	if err := o.await(ctx, c, chosen); err != nil {
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
	namespaces := []string{""}
	if !o.all {
		namespaces = nil
		for _, account := range accounts {
			namespaces = append(namespaces, account.Namespace)
		}
	}
	slices.Sort(namespaces)
	var chosen []inventory.PullSecret
	for _, namespace := range slices.Compact(namespaces) {
		found, err := inventory.Read(ctx, c, namespace, preset, o.env.Clock.Now())
		if err != nil {
			return nil, err
		}
		for _, secret := range found.Secrets {
			if secret.State != inventory.StateLegacy && (o.all || slices.Contains(accounts, accountOf(secret))) {
				chosen = append(chosen, secret)
			}
		}
	}
	return chosen, o.complete(chosen, accounts)
}

// complete refuses ServiceAccounts without a pull secret.
func (o *refreshOptions) complete(chosen []inventory.PullSecret, accounts []types.NamespacedName) error {
	for _, account := range accounts {
		if !slices.ContainsFunc(chosen, func(p inventory.PullSecret) bool { return accountOf(p) == account }) {
			return cli.NotFoundf("list them with: "+o.env.Command("pull-secrets list -A"), "ServiceAccount %s has no pull secret with a bound token", account)
		}
	}
	return nil
}

// accountOf is the ServiceAccount of a pull secret.
func accountOf(secret inventory.PullSecret) types.NamespacedName {
	return types.NamespacedName{Namespace: secret.Namespace, Name: secret.ServiceAccount}
}

// request asks for new tokens. A pull secret without one gets one anyway.
func request(ctx context.Context, c client.Client, chosen []inventory.PullSecret) error {
	for _, secret := range chosen {
		if secret.Issued == nil {
			continue
		}
		name := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
		if err := imagepull.RequestRefresh(ctx, c, name, *secret.Issued); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// await waits for one pull secret after the other.
func (o *refreshOptions) await(ctx context.Context, c client.Client, chosen []inventory.PullSecret) error {
	return o.env.Progress().Step(ctx, "Waiting for the controller", func(ctx context.Context, say cli.Say) error {
		for i := range chosen {
			say("%d of %d pull secrets are refreshed", i, len(chosen))
			for done := false; !done; {
				var err error
				if done, err = o.refreshed(ctx, c, &chosen[i]); err != nil {
					return err
				}
				if !done && !pause.For(ctx, o.env.Clock, refreshInterval) {
					return ctx.Err()
				}
			}
		}
		return nil
	})
}

// refreshed reports whether a pull secret has another token than before, or is gone.
func (o *refreshOptions) refreshed(ctx context.Context, c client.Client, before *inventory.PullSecret) (bool, error) {
	now, err := inventory.Get(ctx, c, types.NamespacedName{Namespace: before.Namespace, Name: before.Name}, o.env.Clock.Now())
	if now == nil || err != nil {
		return err == nil, err
	}
	return now.Usable && now.Issued != nil && (before.Issued == nil || now.Issued.After(*before.Issued)), nil
}

func (o *refreshOptions) print(chosen []inventory.PullSecret, what string) error {
	for _, secret := range chosen {
		if err := o.changes.AddLine(ref(secret), what, fmt.Sprintf("secret %s/%s %s", secret.Namespace, secret.Name, what)); err != nil {
			return err
		}
	}
	return nil
}
