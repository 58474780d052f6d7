package exchange

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/rulestore"
)

type allowOptions struct {
	changes    *cli.Changes
	env        cli.Env
	rules      rules.Flags
	to         string
	audiences  []string
	requirePod bool
	force      bool
	target     v1alpha1.Target
	expiration time.Duration
}

func newAllow(env cli.Env) *cobra.Command {
	o := &allowOptions{env: env, changes: cli.NewChanges(env)}
	cmd := &cobra.Command{
		Use:   "allow CLUSTER NAMESPACE/NAME... --to ACCOUNT",
		Short: "Allow ServiceAccounts of a cluster to act as one of the hub",
		Long: `Let ServiceAccounts of a cluster become one of the hub. The command appends a
rule to the TokenExchangePolicy in the cluster's namespace on the hub. The first
rule that matches decides, so a rule behind a wider one changes nothing.

Namespaces and names of the cluster may be patterns, with * for any characters.
CLUSTER "*" is every cluster that publishes its keys and has no policy; its
rules are in the TokenExchangeDefaults. --to is an account of the hub, or a
template with {cluster}, {namespace} and {name}, or the word "same" for the same
namespace and name, which needs namespaces to be named.

A rule needs an audience that the workloads request their tokens for: the
cluster's own or the default one, unless --audience names another.`,
		Example: fmt.Sprintf(`  # The secrets operator in the app namespaces of cluster1
  %[1]s exchange allow cluster1 'app-*/eso' \
      --to 'cluster1/{namespace}.{name}' --audience https://hub.example.com

  # Print the object as it would be
  %[1]s exchange allow cluster1 ci/bot --to builds/cluster1-bot --dry-run`, env.Name),
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.changes.End(o.run(cmd.Context(), args[0], args[1:]))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "the ServiceAccount of the hub, as NAMESPACE/NAME or a template of it, or \"same\"")
	flags.StringSliceVar(&o.audiences, "audience", nil, "only tokens for one of these audiences, separated by commas")
	cli.AliasFlag(cmd, "audiences", "audience")
	flags.BoolVar(&o.requirePod, "require-bound-pod", false, "only tokens that are bound to a Pod")
	flags.StringSliceVar(&o.target.Namespaces, "target-namespaces", nil, "the namespaces of the hub that a template may lead to")
	flags.StringSliceVar(&o.target.Audiences, "target-audience", nil, "audiences of the issued token; the hub API server's own by default")
	flags.DurationVar(&o.expiration, "expiration", 0, "lifetime of the issued token, 10m or more; 1h by default")
	flags.BoolVar(&o.force, "force-conflicts", false, "take the rules over from another field manager")
	_ = cmd.MarkFlagRequired("to")
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	clusters := fleet.CompleteClusters(env)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 { // What is behind the cluster is on the cluster.
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return clusters(cmd, args, typed)
	}
	return cmd
}

func (o *allowOptions) run(ctx context.Context, cluster string, accounts []string) error {
	list, err := o.list(accounts)
	if err != nil {
		return err
	}
	source, err := o.rules.Open(ctx, o.env)
	if err != nil {
		return err
	}
	if err := o.vet(ctx, source, cluster); err != nil {
		return err
	}
	source.ForceConflicts = o.force
	change, err := source.Allow(ctx, cluster, list)
	switch {
	case err != nil:
		return rules.Explain(o.env, err)
	case !change.Changed():
		o.changes.Note(rules.Ref(change), cli.Unchanged)
		o.env.Say("The rules allow it already.")
		return nil
	}
	return o.report(change, cluster)
}

// list returns the rules that the flags and arguments define.
func (o *allowOptions) list(accounts []string) ([]v1alpha1.Rule, error) {
	rule := v1alpha1.Rule{Audiences: o.audiences, RequireBoundPod: o.requirePod}
	switch to, ok := cli.NamespacedName(o.to); {
	case o.to == "same":
		rule.MapTo = policy.Same()
	case ok:
		rule.MapTo = v1alpha1.Mapping{Namespace: to.Namespace, Name: to.Name}
	default:
		return nil, cli.Usagef("--to: %q is neither NAMESPACE/NAME nor \"same\"", o.to)
	}
	if o.expiration != 0 && o.expiration < policy.MinExpiration {
		return nil, cli.Usagef("--expiration: an API server issues tokens for 10m or more")
	}
	target := o.target
	target.ExpirationSeconds = int64(o.expiration.Seconds())
	if len(target.Namespaces)+len(target.Audiences) > 0 || target.ExpirationSeconds > 0 {
		rule.Target = &target
	}
	var names []types.NamespacedName
	for _, text := range accounts {
		account, ok := cli.NamespacedName(text)
		if !ok {
			return nil, cli.Usagef("%q is not NAMESPACE/NAME", text)
		}
		names = append(names, account)
	}
	return rulestore.ForAccounts(rule, names), nil
}

// vet refuses a cluster that the hub does not know, and rules without an audience.
func (o *allowOptions) vet(ctx context.Context, source *rules.Source, cluster string) error {
	audiences, err := source.Audiences(ctx, cluster)
	if err != nil {
		return rules.Explain(o.env, err)
	}
	if err := o.known(ctx, source, cluster); err != nil {
		return err
	}
	if len(o.audiences) == 0 && len(audiences) == 0 {
		return cli.Usagef("name with --audience what the workloads request their tokens for, such as the address of this hub: cluster %s has no default", cluster)
	}
	return nil
}

func (o *allowOptions) known(ctx context.Context, source *rules.Source, cluster string) error {
	if cluster == policy.AnyCluster {
		return nil
	}
	err := source.Hub().Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1.ManagedCluster{})
	if apierrors.IsNotFound(err) {
		return fleet.UnknownCluster(ctx, source.Hub(), cluster, "see them with: "+o.env.Command("get clusters"))
	}
	if apierrors.IsForbidden(err) {
		return nil // The hub says whether the cluster has a namespace.
	}
	return err
}

// report prints what is risky about the rules of the cluster, and the next step.
func (o *allowOptions) report(change rulestore.Change, cluster string) error {
	for _, f := range change.Warnings(cluster) {
		o.env.Warn("%s", f)
	}
	o.changes.Note(rules.Ref(change), "configured")
	if o.env.Kube.DryRun() != cli.DryRunNone {
		if !o.changes.Text() {
			return nil
		}
		data, err := change.YAML()
		if err == nil {
			_, err = o.env.Out.Write(data)
		}
		return err
	}
	o.env.Say("Written to %s of the hub.", change)
	o.env.Say("Next, let the token authorizer issue these tokens:\n  %s | %s", o.env.Command("exchange rbac"), o.env.Kubectl("apply -f -"))
	return nil
}
