package accept

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/acceptance"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

type options struct {
	env      cli.Env
	out      *cli.Output
	wait     cli.Wait
	clusters []string
	all      bool
	yes      bool
	choice   acceptance.Choice
}

// New returns the command.
func New(env cli.Env) *cobra.Command {
	o := &options{env: env, out: cli.NewOutput(cli.TableFmt, cli.JSON, cli.YAML, cli.Name, cli.JSONPath)}
	cmd := &cobra.Command{
		Use:   "accept [CLUSTER...]",
		Short: "Accept clusters that ask to join the hub, or deny them",
		Long: `Accept clusters that ask to join the hub, or deny them.

The command shows who asks with which key. The same fingerprint is printed by
join on the managed cluster. When two requesters or two keys claim one name,
none is accepted until one is chosen with --fingerprint.`,
		Example: fmt.Sprintf(`  # Accept a cluster, waiting for its request if need be
  %[1]s accept cluster1 --wait

  # Accept everything that waits and is not ambiguous
  %[1]s accept --all-pending

  # Refuse a request
  %[1]s accept cluster1 --deny`, env.Name),
		ValidArgsFunction: fleet.CompleteClusters(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.clusters = append(o.clusters, args...)
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.clusters, "clusters", "c", nil, "names of the clusters, separated by commas")
	cli.AliasFlag(cmd, "cluster", "clusters")
	flags.BoolVar(&o.all, "all-pending", false, "take every cluster that waits to be accepted")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.StringVar(&o.choice.Fingerprint, "fingerprint", "", "take the request with this key only, and deny its rivals")
	flags.BoolVar(&o.choice.Deny, "deny", false, "deny the requests and set hubAcceptsClient to false")
	flags.StringSliceVar(&o.choice.Requesters, "requesters", nil, "users whose requests are approved as well, besides the identities made for joining")
	flags.BoolVar(&o.choice.SkipCheck, "skip-approve-check", false, "approve the request whoever made it")
	o.wait.AddTo(cmd, "wait for the request and for the credential to be issued")
	o.out.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("clusters", fleet.CompleteClusters(env))
	cmd.MarkFlagsMutuallyExclusive("deny", "wait")
	cmd.MarkFlagsMutuallyExclusive("deny", "skip-approve-check")
	return cmd
}

func (o *options) validate() error {
	slices.Sort(o.clusters)
	o.clusters = slices.Compact(o.clusters)
	switch {
	case o.all && len(o.clusters) > 0:
		return cli.Usagef("give either cluster names or --all-pending")
	case !o.all && len(o.clusters) == 0:
		return cli.Usagef("name the clusters, or give --all-pending")
	case o.choice.Fingerprint != "" && len(o.clusters) != 1:
		return cli.Usagef("--fingerprint chooses a request of one cluster; name exactly one")
	}
	for _, name := range o.clusters {
		if err := names.ValidateClusterName(name); err != nil {
			return cli.Usagef("%v", err)
		}
	}
	return nil
}

func (o *options) run(ctx context.Context) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	c, err := o.env.Kube.Client()
	if err != nil {
		return err
	}
	if err := fleet.RequireHub(o.env, c); err != nil {
		return err
	}
	if o.all {
		if o.clusters, err = o.pending(ctx, c); err != nil {
			return err
		}
	}
	r := &acceptance.Runner{Env: o.env, Client: c, Choice: o.choice, Wait: o.wait}
	var (
		results []acceptance.Result
		errs    []error
	)
	for _, name := range o.clusters {
		result, err := r.One(ctx, name)
		results = append(results, result)
		if err != nil {
			errs = append(errs, err)
		}
	}
	if err := o.print(results); err != nil {
		return err
	}
	return together(errs)
}

// together returns one error for all clusters. Several keep the exit code of
// the first.
func together(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return &cli.Explained{
		Problem: fmt.Sprintf("%d clusters were not accepted", len(errs)),
		Code:    cli.ExitCode(errs[0]), Cause: errors.Join(errs...),
	}
}

// pending returns the clusters with a request that waits.
func (o *options) pending(ctx context.Context, c client.Client) ([]string, error) {
	requests, err := fleet.Requests(ctx, c, "")
	if err != nil {
		return nil, err
	}
	var waiting []string
	for _, r := range requests {
		if r.State == fleet.Pending && r.Refusal == "" && !r.Renewal {
			waiting = append(waiting, r.Cluster)
		}
	}
	slices.Sort(waiting)
	waiting = slices.Compact(waiting)
	if len(waiting) == 0 {
		o.env.Say("No cluster waits to be accepted.")
		return nil, nil
	}
	if o.yes || o.env.Kube.DryRun() != cli.DryRunNone {
		return waiting, nil
	}
	verb := "Accept"
	if o.choice.Deny {
		verb = "Deny"
	}
	ok, err := o.env.Confirm(fmt.Sprintf("%s %v?", verb, waiting))
	if err != nil || !ok {
		return nil, err
	}
	return waiting, nil
}
