package legacytokens

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/legacytoken"
)

type migrateOptions struct {
	verb

	hosts   []string
	timeout cli.Timeout
	// migration is set when the first token is looked at.
	migration *legacytoken.Migration
}

func newMigrate(env cli.Env) *cobra.Command {
	o := &migrateOptions{verb: verb{selection: selection{env: env}, done: "migrated"}, timeout: cli.Timeout(time.Minute)}
	o.tasks = o.pullSecrets
	o.explain = o.explained
	o.ready = o.checkHosts
	cmd := &cobra.Command{
		Use:   "migrate {NAMESPACE/NAME... | --all}",
		Short: "Replace legacy tokens in pull secrets by bound tokens",
		Long: `Hand the pull secrets that legacy tokens feed over to the pull secret
controller, and wait until it has replaced the token in each. The pull secret
keeps its name and UID, and the old token works until then. Where no controller
answers, the pull secret is taken back. Name the token Secret, not the pull
secret. Prints what would be done unless --dry-run=none is given.

The controller stores tokens for its own registries only. Refused are pull
secrets with other credentials, and those with a registry that not all pull
secrets have which the controller keeps already; --registry confirms registries.

The exit code is 3 if a pull secret is refused, 124 if no controller answers.`,
		Example: fmt.Sprintf(`  # See what would be migrated, then do it
  %[1]s legacy-tokens migrate -A --all
  %[1]s legacy-tokens migrate -A --all --dry-run=none`, env.Name),
	}
	o.addTo(cmd)
	cmd.Flags().StringArrayVar(&o.hosts, "registry", nil, "host that the controller stores tokens for; repeatable")
	cmd.Flags().Var(&o.timeout, "timeout", "how long to wait for the controller, for each pull secret")
	return cmd
}

// checkHosts accepts hosts as pull secrets have them.
func (o *migrateOptions) checkHosts() error {
	for _, host := range o.hosts {
		if host == "" || strings.Contains(host, "://") || strings.ContainsAny(host, "= ,") {
			return cli.Usagef("--registry: %q is not a registry host: write it as in the name of an image, such as registry.example.com:5000", host)
		}
	}
	return nil
}

// pullSecrets returns the tasks of the pull secrets that a token feeds.
func (o *migrateOptions) pullSecrets(ctx context.Context, _ *legacytoken.Inventory, t *legacytoken.Token) ([]legacytoken.Task, error) {
	if o.migration == nil {
		o.migration = &legacytoken.Migration{Client: o.cluster, Hosts: o.hosts, Patience: time.Duration(o.timeout)}
	}
	return o.migration.Tasks(ctx, t, func(ctx context.Context, p legacytoken.PullSecret) error { return o.migrate(ctx, t, p) })
}

func (o *migrateOptions) migrate(ctx context.Context, t *legacytoken.Token, p legacytoken.PullSecret) error {
	if o.env.Kube.DryRun() == cli.DryRunServer {
		return o.migration.Try(ctx, t, p)
	}
	return o.env.Progress().Step(ctx, "Migrating the pull secret "+p.String(), func(ctx context.Context, say cli.Say) error {
		say("waiting for the controller to replace its token")
		return o.migration.Migrate(ctx, t, p)
	})
}

func (o *migrateOptions) explained(err error) error {
	if _, ok := errors.AsType[*legacytoken.NoAnswerError](err); ok {
		return &cli.Explained{
			Problem: err.Error(),
			Try:     "run the controller: " + o.env.Elsewhere("controller imagepull --help") + "; for pull secrets of OpenShift's registry it needs --preset openshift",
			Code:    cli.CodeTimeout,
		}
	}
	if _, ok := errors.AsType[*legacytoken.HostsLostError](err); ok {
		return cli.Blockedf("name only registries that the controller is run with", "%v", err)
	}
	return err
}
