package accept

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/approver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

type options struct {
	env      cli.Env
	out      *cli.Output
	wait     cli.Wait
	clusters []string
	all      bool
	yes      cli.Yes
	choice   approval.Choice
	drivers  flags.Drivers[driver.AcceptFlags]
	// hub identifies the hub where its ClusterManager does not.
	hub driver.HubSettings
	// own are the drivers that use credentials of the user.
	own []driver.Identifier
}

// New returns the command.
func New(env cli.Env) *cobra.Command {
	o := &options{env: env, out: cli.NewOutput(cli.TableFmt, cli.Wide, cli.Name), drivers: flags.AcceptDrivers(env.Drivers)}
	cmd := &cobra.Command{
		Use:   "accept [CLUSTER...]",
		Short: "Accept or deny clusters that request to join the hub",
		Long: `Accept or deny clusters that request to join the hub.

The command prints the requester and the key fingerprint of each request. On the
managed cluster, join prints the same fingerprint. If two requesters or two keys
request the same name, the command accepts none of them until you choose one
with --fingerprint.

It also prints what the ManagedCluster of a new cluster brings, such as the
labels that placements may choose it by. --discard-settings accepts the cluster
without them. Annotations that the agent registers with stay.

--registration-auth changes the registration driver of a cluster. The cluster
keeps its name and its ManifestWorks; its earlier credential loses its access.` + flags.Help(env.Drivers, func(h driver.Help) string { return h.Accept }),
		Example: fmt.Sprintf(`  # Accept a cluster, and wait for its request and its certificate
  %[1]s accept cluster1 --wait

  # Accept all clusters whose requests do not conflict
  %[1]s accept --all-pending

  # Accept a cluster without the labels that it brings
  %[1]s accept cluster1 --discard-settings

  # Deny a cluster
  %[1]s accept cluster1 --deny

  # Change a cluster to the driver csr, with the fingerprint that join printed
  %[1]s accept cluster1 --registration-auth csr --fingerprint SHA256:...`+flags.Help(env.Drivers, func(h driver.Help) string { return h.AcceptExamples }), env.Name),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: fleet.CompleteClusters(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.clusters = append(o.clusters, args...)
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringSliceVarP(&o.clusters, "clusters", "c", nil, "Names of the clusters, separated by commas")
	cli.AliasFlag(cmd, "cluster", "clusters")
	set.BoolVar(&o.all, "all-pending", false, "Accept all clusters that wait for a decision")
	cli.AddYesFlag(set, &o.yes)
	set.StringVar(&o.choice.Fingerprint, "fingerprint", "", "Fingerprint of the key to accept; conflicting requests are denied")
	set.BoolVar(&o.choice.Deny, "deny", false, "Deny the requests and set hubAcceptsClient to false")
	set.BoolVar(&o.choice.Discard, "discard-settings", false, "Remove all labels, annotations, taints, finalizers and the lease duration of the ManagedCluster")
	set.StringSliceVar(&o.choice.Requesters, "requesters", nil, "Users whose requests are approved in addition to those of bootstrap identities")
	set.BoolVar(&o.choice.SkipCheck, "skip-approve-check", false, "Approve the request regardless of the requester")
	flags.DriverEnum(&o.choice.Register.Driver, o.env.Drivers).
		AddTo(cmd, "registration-auth", "", "Registration driver of the cluster; one with another driver changes to it")
	o.drivers.AddTo(cmd)
	o.wait.AddTo(cmd, "Wait for the request and for the credential to be issued")
	o.out.AddTo(cmd)
	o.env.Kube.AddDryRunFlag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("clusters", fleet.CompleteClusters(o.env))
	_ = cmd.RegisterFlagCompletionFunc("fingerprint", o.completeFingerprint)
	cmd.MarkFlagsMutuallyExclusive("deny", "wait")
	cmd.MarkFlagsMutuallyExclusive("deny", "discard-settings")
	cmd.MarkFlagsMutuallyExclusive("deny", "skip-approve-check")
	cmd.MarkFlagsMutuallyExclusive("deny", "registration-auth")
}

// completeFingerprint completes the keys of pending requests, of the named clusters
// if there are any.
func (o *options) completeFingerprint(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, err := o.env.Kube.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cluster := strings.Join(append(args, o.clusters...), ",")
	requests, err := approval.Requests(cmd.Context(), c, cluster)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var keys []cobra.Completion
	for _, r := range requests {
		if r.State == approval.Pending && r.Rejection == "" && strings.HasPrefix(r.Fingerprint, typed) {
			keys = append(keys, cobra.CompletionWithDesc(r.Fingerprint, r.Cluster+", "+r.Requester))
		}
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
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
	case o.choice.Register.Driver != "" && len(o.clusters) != 1:
		return cli.Usagef("--registration-auth is about one cluster; name exactly one")
	}
	if err := o.accepts(); err != nil {
		return err
	}
	for _, name := range o.clusters {
		if err := names.ValidateClusterName(name); err != nil {
			return cli.Usagef("%v", err)
		}
	}
	return nil
}

// accepts reads the flags of the drivers, before anything is contacted.
func (o *options) accepts() error {
	for _, d := range o.drivers {
		said, err := d.Flags.Acceptance(o.choice.Register.Driver)
		if err != nil {
			return cli.Usagef("%v", err)
		}
		by, ok := d.Setup.(driver.Identifier)
		if !ok {
			continue
		}
		if said.ID != "" {
			o.choice.Register.ID = said.ID
		}
		if said.Own {
			o.own = append(o.own, by)
		}
		if by.Grants().Hub(said.Hub) != "" {
			o.hub = said.Hub
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
	if err := fleet.RequireHub(ctx, o.env, c); err != nil {
		return err
	}
	r := approver.New(o.env, c, o.wait, cli.Context{})
	r.Choice, r.Hub = o.choice, o.hub
	for _, by := range o.own {
		if err := r.UseOwnCredentials(ctx, by); err != nil {
			return err
		}
	}
	if o.all {
		if o.clusters, err = o.pending(ctx, r); err != nil {
			return err
		}
	}
	if err := o.confirm(ctx, r); err != nil {
		return err
	}
	var (
		results []approver.Result
		errs    []error
	)
	for _, name := range o.clusters {
		result, err := r.One(ctx, name)
		if err != nil {
			errs = append(errs, err)
		}
		if result.Known {
			results = append(results, result)
		}
	}
	if err := o.print(results); err != nil {
		return err
	}
	return together(errs)
}

// together returns one error for all clusters, with the exit code of the first.
func together(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return &cli.Explained{
		Problem: fmt.Sprintf("%d clusters were not accepted", len(errs)),
		Code:    cli.ExitCode(errs[0]), Cause: errors.Join(errs...),
	}
}
