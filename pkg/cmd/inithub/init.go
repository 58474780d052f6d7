package inithub

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

type options struct {
	env       cli.Env
	out       *cli.Output
	changes   *cli.Changes
	wait      cli.Wait
	workload  flags.Workload
	gates     *flags.Gates
	drivers   driverFlags
	join      fleet.JoinFlags
	cleanup   cleanupFlags
	features  hub.FeatureChoice
	rendering fleet.Rendering
	// joinFile is where the join command goes as well.
	joinFile string
	noToken  bool

	preflight flags.Preflight
	takeOver  fleet.TakeOverFlags
}

// driverFlags are the flags about how clusters register.
type driverFlags struct {
	names []driver.AuthType
	flags flags.Drivers[driver.InitFlags]
}

// cleanupFlags are the flags about the job that removes orphaned clusters.
type cleanupFlags struct {
	enabled  bool
	after    time.Duration
	schedule string
}

// New returns the command.
func New(env cli.Env) *cobra.Command {
	o := &options{env: env, out: cli.NewOutput(cli.Text, cli.Name), gates: flags.NewGates(hub.Gates()), drivers: driverFlags{flags: flags.InitDrivers(env.Drivers)}}
	o.changes = cli.ChangesFor(env, o.out)
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Initialize a hub",
		Long: `Make a cluster the hub of a fleet and print the command that joins clusters.

Running it again repairs the hub, changes what flags say and keeps the rest. An
older installation is brought to this release. A hub of OCM is left alone unless
--take-over is given, which replaces it in place and keeps all clusters.`,
		Example: fmt.Sprintf(`  # Install the hub and wait until it works
  %[1]s init --wait

  # Managed clusters reach the hub under another address than you do
  %[1]s init --wait --hub-apiserver https://hub.example.com:6443

  # With a token authorizer for Envoy or Istio
  %[1]s init --wait --feature token-authorizer

  # Show how a hub of OCM would be replaced, then do it
  %[1]s init --take-over --dry-run
  %[1]s init --take-over

  # Put what would be installed into a repository, without Secrets
  %[1]s init --dry-run=client --skip-secret > hub.yaml`+flags.Help(env.Drivers, func(h driver.Help) string { return h.InitExamples }), env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.ask(); err != nil {
				return err
			}
			values, err := o.complete(cmd)
			if err != nil {
				return err
			}
			err = o.run(cmd.Context(), values)
			if o.out.Machine() { // They have the join command.
				return err
			}
			return o.changes.End(err)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.drivers.addTo(cmd, o.env.Drivers)
	o.join.AddTo(cmd, "address of the hub that managed clusters can reach; it is remembered",
		"print a Kubernetes bootstrap token, which does not expire, instead of a ServiceAccount token")
	cmd.Flags().StringVar(&o.joinFile, "output-join-command-file", "", "write the join command to this file, as a script that takes the cluster name")
	cmd.Flags().BoolVar(&o.noToken, "no-token", false, "make no bootstrap token, and print no join command")
	o.cleanup.addTo(cmd)
	o.addFeatures(cmd)
	o.gates.AddTo(cmd)
	o.workload.AddTo(cmd)
	o.workload.AddOperatorTo(cmd)
	o.wait.AddTo(cmd, "wait until the hub works")
	o.out.AddTo(cmd)
	o.env.Kube.AddDryRunFlag(cmd)
	o.rendering.AddTo(cmd)
	o.preflight.AddForceTo(cmd)
	o.takeOver.AddTo(cmd, "the hub")
	cmd.MarkFlagsMutuallyExclusive("no-token", "output-join-command-file")
	cmd.MarkFlagsMutuallyExclusive("no-token", "use-bootstrap-token")
	flags.AddCompat(cmd, map[string]string{
		"bundle-version":           "there is one image, and its version is this command's",
		"bundle-version-overrides": "there is one image, and its version is this command's",
		"singleton":                "it was removed upstream",
		"singleton-name":           "it was removed upstream",
	}, map[string]string{
		"grpc-server": flags.NoGRPC, "grpc-endpoint-type": flags.NoGRPC, "auto-approved-grpc-identities": flags.NoGRPC,
		"cluster-manager-values-file": "there is no Helm chart; use the flags, or edit the output of --dry-run=client",
	})
}

func (o *options) addFeatures(cmd *cobra.Command) {
	cli.NewEnumSlice(&o.features.On, nil, hub.Features()...).AddTo(cmd, "feature", "", "optional parts of the hub to run")
	cli.NewEnumSlice(&o.features.Off, nil, hub.Features()...).AddTo(cmd, "disable-feature", "", "optional parts of the hub to remove")
	cmd.Flags().StringVar(&o.features.TokenAuthorizerTLS, "token-authorizer-tls-secret", "",
		"TLS Secret in "+names.HubNamespace+" that the token authorizer serves with, instead of one that is issued")
}

func (d *driverFlags) addTo(cmd *cobra.Command, known driver.Catalog) {
	flags.DriverEnums(&d.names, known).
		AddTo(cmd, flags.DriverFlag, "", "how clusters may register: csr, awsirsa (also aws-irsa) or both (also --registration-drivers)")
	cli.AliasFlag(cmd, "registration-drivers", flags.DriverFlag)
	d.flags.AddTo(cmd)
}

func (c *cleanupFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&c.enabled, "unjoined-cleanup", false, "delete clusters that unjoined and stayed denied, by a CronJob")
	flags.DurationVar(&c.after, "unjoined-cleanup-after", 24*time.Hour, "how long they must have been denied")
	flags.StringVar(&c.schedule, "unjoined-cleanup-schedule", "17 * * * *", "when the CronJob looks")
}
