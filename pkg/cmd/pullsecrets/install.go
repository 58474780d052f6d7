package pullsecrets

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/pullsecrets"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	controller "github.com/kubectl-ocm/kubectl-ocm/pkg/install/pullsecrets"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

type installOptions struct {
	out      *cli.Output
	changes  *cli.Changes
	env      cli.Env
	wait     cli.Wait
	workload flags.Workload
	pull     pullsecrets.Flags

	preflight flags.Preflight
}

func newInstall(env cli.Env) *cobra.Command {
	out := cli.NewOutput(cli.Text, cli.Name)
	o := &installOptions{env: env, out: out, changes: cli.ChangesFor(env, out)}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the image pull secret controller",
		Long: `Install the image pull secret controller as a Deployment in the namespace
` + names.ImagePullNamespace + `, with the least permissions that its flags need: with --namespaces
it may do nothing anywhere else.

Running it again repairs the installation, changes what flags say and keeps the
rest. A list, such as --registry, is replaced as a whole.`,
		Example: fmt.Sprintf(`  # Pull secrets for one registry, for ServiceAccounts that opt in
  %[1]s pull-secrets install --wait --registry registry.example.com \
      --audience registry.example.com

  # For all ServiceAccounts of two namespaces, without cluster-wide permissions
  %[1]s pull-secrets install --wait --registry registry.example.com \
      --audience registry.example.com --namespaces shop,web

  # See what would be installed
  %[1]s pull-secrets install --registry registry.example.com \
      --audience registry.example.com --dry-run=client`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if env.Kube.DryRun() == cli.DryRunClient {
				return o.render()
			}
			return o.changes.End(o.run(cmd.Context()))
		},
	}
	o.pull.AddTo(cmd)
	o.workload.AddTo(cmd)
	o.wait.AddTo(cmd, "wait until the controller is ready")
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	o.preflight.AddTo(cmd)
	return cmd
}

func (o *installOptions) run(ctx context.Context) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	runner, err := fleet.NewRunner(o.env, o.env.Kube)
	if err != nil {
		return err
	}
	runner.Skip, runner.Wait = o.preflight.Skipped(), o.wait.Enabled
	args, err := controller.Runner{Runner: runner}.Args(ctx)
	if err != nil {
		return err
	}
	if err := o.pull.Keep(args); err != nil {
		return err
	}
	wanted, err := o.value()
	if err != nil {
		return err
	}
	outcome, err := controller.Runner{Runner: runner}.Install(ctx, wanted)
	fleet.NoteApplied(o.changes, outcome.Changes)
	if err != nil {
		return o.explain(err)
	}
	o.report(outcome, wanted)
	return nil
}

// value is what the flags say.
func (o *installOptions) value() (controller.Values, error) {
	config, err := o.pull.Config()
	if err != nil {
		return controller.Values{}, err
	}
	workload, err := o.workload.Value()
	return controller.Values{Workload: workload, Controller: manifests.ImagePull{
		Controller: manifests.Component{Args: o.pull.Args()},
		Namespaces: config.Namespaces, OnlyUsed: config.OnlyUsed,
		ConfigMap: config.Lookup.ConfigMap,
		LooksUp:   len(config.Lookup.Services)+len(config.Lookup.Routes) > 0,
	}}, err
}

// render prints a new installation. It needs no cluster.
func (o *installOptions) render() error {
	wanted, err := o.value()
	if err != nil {
		return err
	}
	objs, err := wanted.Render()
	if err != nil {
		return err
	}
	return fleet.PrintObjects(o.env.Out, o.out, objs)
}

func (o *installOptions) explain(err error) error {
	waiting := install.Unmet(err)
	if waiting == "" {
		waiting = "the image pull secret controller"
	}
	return o.wait.TimedOut(fleet.Explain(err), waiting, "see what is wrong with: "+o.env.Kubectl("describe pods -n", names.ImagePullNamespace))
}

// report says what was done, and what to do next.
func (o *installOptions) report(outcome install.Outcome, wanted controller.Values) {
	switch {
	case o.env.Kube.DryRun() == cli.DryRunServer:
		o.env.Say("The server would accept all of it; nothing was changed.")
		return
	case !outcome.Changes.Changed():
		o.env.Say("The image pull secret controller is up to date; nothing was changed.")
		return
	}
	o.env.Say("The image pull secret controller is installed.")
	if len(wanted.Controller.Namespaces) > 0 {
		o.env.Say("%s", cli.Fold("It keeps pull secrets for the ServiceAccounts in: "+strings.Join(wanted.Controller.Namespaces, ", "), "  "))
		return
	}
	if o.pull.Preset() == imagepull.OpenShift {
		o.env.Say("It keeps pull secrets for all ServiceAccounts that are not opted out.")
		return
	}
	o.env.Say("Opt in with a namespace, or with a ServiceAccount:")
	o.env.Say("  %s", o.env.Kubectl("annotate namespace NAMESPACE", names.AnnotationPullSecret+"=true"))
}
