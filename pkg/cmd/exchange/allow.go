package exchange

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/truststore"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
)

type allowOptions struct {
	env        cli.Env
	store      truststore.Flags
	to         string
	audiences  []string
	requirePod bool
	yes        bool
	target     truststore.Target
	expiration time.Duration
}

func newAllow(env cli.Env) *cobra.Command {
	o := &allowOptions{env: env}
	cmd := &cobra.Command{
		Use:   "allow CLUSTER NAMESPACE/NAME... --to NAMESPACE/NAME",
		Short: "Let ServiceAccounts of a cluster become one of the hub",
		Long: `Let ServiceAccounts of a cluster become one of the hub: it appends a rule to
the cluster's, in the ConfigMap of the hub or in a file. The first rule that
matches decides, so a rule behind a wider one changes nothing.

Namespaces and names of the cluster may be patterns, with * for any characters;
CLUSTER "*" is every cluster that publishes its keys and has no entry of its
own. --to is an account of the hub, or a template with {cluster}, {namespace}
and {name}, or the word "same" for the same namespace and name, which needs
namespaces to be named.

A rule needs an audience that the workloads ask their tokens for: the cluster's
own or the default one, unless --audience names another.`,
		Example: fmt.Sprintf(`  # The secrets operator in the app namespaces of cluster1
  %[1]s exchange allow cluster1 'app-*/eso' \
      --to 'cluster1/{namespace}.{name}' --audience https://hub.example.com

  # See the configuration as it would be
  %[1]s exchange allow cluster1 ci/bot --to builds/cluster1-bot --dry-run

  # In a file
  %[1]s exchange allow cluster1 ci/bot --to same \
      --clusters-config clusters.yaml`, env.Name),
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1:]) },
	}
	o.store.AddTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "the ServiceAccount of the hub, as NAMESPACE/NAME or a template of it, or \"same\"")
	flags.StringSliceVar(&o.audiences, "audience", nil, "only tokens for one of these audiences, separated by commas")
	cli.AliasFlag(cmd, "audiences", "audience")
	flags.BoolVar(&o.requirePod, "require-bound-pod", false, "only tokens that are bound to a Pod")
	flags.StringSliceVar(&o.target.Namespaces, "target-namespaces", nil, "the namespaces of the hub that a template may lead to")
	flags.StringSliceVar(&o.target.Audiences, "target-audience", nil, "audiences of the issued token; the hub API server's own by default")
	flags.DurationVar(&o.expiration, "expiration", 0, "how long the issued token lives, 10m or more; 1h by default")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	_ = cmd.MarkFlagRequired("to")
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
	rules, err := o.rules(accounts)
	if err != nil {
		return err
	}
	store, err := o.store.Open(o.env)
	if err != nil {
		return err
	}
	if err := o.vet(ctx, store, cluster); err != nil {
		return err
	}
	closed := 0
	doc, changed, err := store.Edit(ctx, func(d *truststore.Document) error {
		if closed = 0; d.Seed() {
			closed = len(d.Clusters())
		}
		return o.add(d, store, cluster, rules)
	})
	switch {
	case err != nil:
		return err
	case !changed:
		o.env.Say("%s allows it already.", store)
		return nil
	case closed > 0:
		o.env.Warn("%s had no policy; from now on only its rules allow, and %d other cluster(s) of it have none.", store, closed-1)
	}
	return o.tell(store, doc, cluster)
}

// rules makes the rules: one for each way to write a namespace, because a rule
// is about all of its ServiceAccounts in all of its namespaces.
func (o *allowOptions) rules(accounts []string) ([]truststore.Rule, error) {
	rule := truststore.Rule{Audiences: o.audiences, RequireBoundPod: o.requirePod}
	switch namespace, name, ok := account(o.to); {
	case o.to == "same":
		rule.MapTo.Same = true
	case ok:
		rule.MapTo.Namespace, rule.MapTo.Name = namespace, name
	default:
		return nil, cli.Usagef("--to: %q is neither NAMESPACE/NAME nor \"same\"", o.to)
	}
	if o.expiration != 0 && o.expiration < policy.MinExpiration {
		return nil, cli.Usagef("--expiration: an API server issues tokens for 10m or more")
	}
	target := o.target
	target.ExpirationSeconds = int(o.expiration.Seconds())
	if len(target.Namespaces)+len(target.Audiences)+target.ExpirationSeconds > 0 {
		rule.Target = &target
	}
	var out []truststore.Rule
	at := map[string]int{}
	for _, text := range accounts {
		namespace, name, ok := account(text)
		if !ok {
			return nil, cli.Usagef("%q is not NAMESPACE/NAME", text)
		}
		i, seen := at[namespace]
		if !seen {
			i = len(out)
			at[namespace] = i
			r := rule
			r.Namespaces = []string{namespace}
			out = append(out, r)
		}
		out[i].ServiceAccounts = append(out[i].ServiceAccounts, name)
	}
	return out, nil
}

// vet refuses a cluster that the hub does not know.
func (o *allowOptions) vet(ctx context.Context, store *truststore.Store, cluster string) error {
	if store.Hub() == nil || cluster == policy.AnyCluster {
		return nil
	}
	err := store.Hub().Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1.ManagedCluster{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	doc, err := store.Read(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(doc.Clusters(), cluster) {
		return nil // It has keys of its own.
	}
	return cli.NotFoundf("see them with: "+o.env.Name+" get clusters; one that is not managed is added with issuer add",
		"the hub knows no cluster %q", cluster)
}

func (o *allowOptions) add(d *truststore.Document, store *truststore.Store, cluster string, rules []truststore.Rule) error {
	if d.Seed() {
		if err := o.confirm(store, len(d.Clusters())); err != nil {
			return err
		}
	}
	if len(o.audiences) == 0 && len(d.Audiences(cluster)) == 0 {
		return cli.Usagef("name with --audience what the workloads ask their tokens for, such as the address of this hub: %s has no default", store)
	}
	if err := ensure(o.env, d, store, cluster); err != nil {
		return err
	}
	for _, rule := range rules {
		if _, err := d.AddRule(cluster, rule); err != nil {
			return err
		}
	}
	return nil
}

// ensure adds the entry of a cluster whose keys are published on the hub.
func ensure(env cli.Env, d *truststore.Document, store *truststore.Store, cluster string) error {
	switch {
	case slices.Contains(d.Clusters(), cluster):
		return nil
	case store.Hub() == nil && cluster != policy.AnyCluster:
		return cli.NotFoundf("add it with: "+env.Name+" issuer add", "%s has no cluster %q", store, cluster)
	}
	return d.SetCluster(truststore.Entry{Name: cluster})
}

// confirm asks before a file without a policy gets one.
func (o *allowOptions) confirm(store *truststore.Store, clusters int) error {
	if o.yes || o.env.Kube.DryRun() != cli.DryRunNone {
		return nil
	}
	ok, err := o.env.Confirm(fmt.Sprintf("%s has no policy and allows everything to %d cluster(s). With a rule, only rules allow. Go on?", store, clusters))
	if err == nil && !ok {
		err = cli.Blockedf("", "nothing was changed")
	}
	return err
}

// tell says what is unwise about the rules of the cluster, and what comes next.
func (o *allowOptions) tell(store *truststore.Store, doc *truststore.Document, cluster string) error {
	cfg, err := doc.Config(store.Options())
	if err != nil {
		return err
	}
	if c, ok := cfg.Cluster(cluster); ok {
		for _, f := range cfg.Lint() {
			if f.Severity == policy.Warning && strings.HasPrefix(f.Path, c.Spec.Path) {
				o.env.Warn("%s", f)
			}
		}
	}
	if o.env.Kube.DryRun() != cli.DryRunNone {
		data, err := doc.Bytes()
		if err == nil {
			_, err = o.env.Out.Write(data)
		}
		return err
	}
	o.env.Say("Written to %s.", store)
	o.env.Say("Next, let the token authorizer issue these tokens:\n  %s exchange rbac%s | kubectl apply -f -", o.env.Name, o.store.Again())
	return nil
}
