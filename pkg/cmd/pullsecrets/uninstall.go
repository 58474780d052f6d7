package pullsecrets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/legacy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/removal"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	controller "github.com/kubectl-ocm/kubectl-ocm/pkg/install/pullsecrets"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

type uninstallOptions struct {
	changes     *cli.Changes
	env         cli.Env
	wait        cli.Wait
	yes         cli.Yes
	force       bool
	keepSecrets bool
	// preset removes the pull secrets with the names of a product as well, whose own
	// controllers would take them over.
	preset imagepull.Preset
}

func newUninstall(env cli.Env) *cobra.Command {
	o := &uninstallOptions{env: env, changes: cli.NewChanges(env)}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the image pull secret controller and what it made",
		Long: `Remove the image pull secret controller: stop it, take its entries out of
imagePullSecrets, delete the pull secrets, its permissions and its namespace.

While Pods name a pull secret, nothing is removed: without it, their next pull
may fail. Then remove everything but the Secrets with --keep-secrets, recreate
the Pods, which no longer get an entry, and run the command again.

It can be run again at any time, and continues where it was interrupted.`,
		Example: fmt.Sprintf(`  # What would be removed
  %[1]s pull-secrets uninstall --dry-run=client

  # Remove it while Pods use it
  %[1]s pull-secrets uninstall --keep-secrets
  kubectl rollout restart deployment -n shop
  %[1]s pull-secrets uninstall`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.changes.End(o.run(cmd.Context())) },
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "delete pull secrets although Pods name them")
	cmd.Flags().BoolVar(&o.keepSecrets, "keep-secrets", false, "leave the pull secrets, whose tokens expire")
	cmd.MarkFlagsMutuallyExclusive("force", "keep-secrets")
	cli.NewEnum(&o.preset, nil, imagepull.OpenShift).AddTo(cmd, "preset", "", "Remove the pull secrets with the names of this product, too; otherwise its own controllers can take them over")
	cli.AddYesFlag(cmd.Flags(), &o.yes)
	o.wait.AddTo(cmd, "has no effect: the command always waits")
	cmd.Flags().Lookup("wait").Hidden = true
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func (o *uninstallOptions) run(ctx context.Context) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	runner, err := fleet.NewRunner(o.env, o.env.Kube)
	if err != nil {
		return err
	}
	left, err := o.find(ctx, runner.Client)
	if err != nil {
		return err
	}
	installed, err := controller.Runner{Runner: runner}.Plan(ctx)
	if err != nil {
		return err
	}
	held, err := legacy.Held(ctx, runner.Client)
	if err != nil {
		return err
	}
	if len(installed)+len(left.Accounts)+len(left.Secrets)+len(held) == 0 {
		return cli.NotFoundf("check that --context names the right cluster", "the image pull secret controller is not installed")
	}
	if err := o.mode().Check(left); err != nil {
		return o.explain(err)
	}
	name, server := o.env.Kube.Target()
	if err := o.env.Confirm(o.yes, fmt.Sprintf("Remove the image pull secret controller of context %s (%s)?", name, server)); err != nil {
		return err
	}
	o.note(left)
	if o.env.Kube.DryRun() != cli.DryRunNone {
		return o.plan(ctx, runner, left, held)
	}
	if err := o.remove(ctx, runner); err != nil {
		return o.wait.TimedOut(err, "the image pull secret controller to be removed", "run the command again; it continues")
	}
	return o.done(ctx, runner, left)
}

// note notes what is deleted: the controller, and its pull secrets.
func (o *uninstallOptions) note(left removal.Left) {
	o.changes.Note(cli.RefToKind(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), names.ImagePullNamespace, names.ImagePullDeployment), "deleted")
	if o.keepSecrets {
		return
	}
	for i := range left.Secrets {
		o.changes.Note(cli.RefTo(secretType, left.Secrets[i].Namespace, left.Secrets[i].Name, time.Time{}), "deleted")
	}
}

// find looks for the pull secrets that are to be removed.
func (o *uninstallOptions) find(ctx context.Context, c client.Reader) (removal.Left, error) {
	if o.preset == imagepull.OpenShift {
		return removal.FindOpenShift(ctx, c)
	}
	return removal.Find(ctx, c)
}

// mode returns the mode that the flags choose.
func (o *uninstallOptions) mode() removal.Mode {
	switch {
	case o.keepSecrets:
		return removal.Keep
	case o.force:
		return removal.Used
	}
	return removal.Unused
}

// explain maps an error of the removal to its exit code and the next step.
func (o *uninstallOptions) explain(err error) error {
	if used, ok := errors.AsType[*removal.InUseError](err); ok {
		return cli.Blockedf("leave the pull secrets with --keep-secrets, recreate the Pods, and run the command again; or use --force",
			"these Pods name a pull secret, and their next pull may fail without it: %s", some(used.Pods))
	}
	if errors.Is(err, controller.ErrForeignController) {
		return cli.Blockedf("stop and delete it with the tool that made it, then run the command again", "%v", err)
	}
	return err
}

// some names the first few of a list.
func some(list []types.NamespacedName) string {
	texts := make([]string, len(list))
	for i, name := range list {
		texts[i] = name.String()
	}
	return excerpt.List(texts, ", ")
}

// remove removes everything, in an order in which it can be interrupted anywhere.
func (o *uninstallOptions) remove(ctx context.Context, runner *install.Runner) error {
	if err := (controller.Runner{Runner: runner}).Stop(ctx); err != nil {
		return o.explain(err)
	}
	err := runner.Step(ctx, "Removing pull secrets", func(ctx context.Context, say install.Say) error {
		return removal.Run(ctx, runner.Client, o.mode(), o.find, removal.Say(say))
	})
	if err != nil {
		return o.explain(err)
	}
	return controller.Runner{Runner: runner}.Remove(ctx)
}

// plan prints what would be removed.
func (o *uninstallOptions) plan(ctx context.Context, runner *install.Runner, left removal.Left, held []metav1.PartialObjectMetadata) error {
	var lines []string
	for i := range held {
		lines = append(lines, fmt.Sprintf("secret %s/%s released", held[i].Namespace, held[i].Name))
	}
	for i := range left.Accounts {
		lines = append(lines, fmt.Sprintf("serviceaccount %s/%s detached", left.Accounts[i].Namespace, left.Accounts[i].Name))
	}
	if !o.keepSecrets {
		for i := range left.Secrets {
			lines = append(lines, fmt.Sprintf("secret %s/%s deleted", left.Secrets[i].Namespace, left.Secrets[i].Name))
		}
	}
	installed, err := controller.Runner{Runner: runner}.Plan(ctx)
	if err != nil {
		return err
	}
	for _, obj := range installed {
		lines = append(lines, runner.Describe(obj)+" deleted")
	}
	return o.changes.Plan(lines...)
}

// done says what was removed, and what is left to do.
func (o *uninstallOptions) done(ctx context.Context, runner *install.Runner, left removal.Left) error {
	if err := o.changes.Print("The image pull secret controller was removed."); err != nil {
		return err
	}
	if o.keepSecrets && len(left.Secrets) > 0 {
		o.env.Say("%d pull secrets are left, and their tokens expire. When their Pods are recreated,", len(left.Secrets))
		o.env.Say("delete them with: %s", o.env.Command("pull-secrets uninstall"))
		return nil
	}
	others, err := removal.FindOpenShift(ctx, runner.Client)
	if err == nil && len(others.Secrets) > 0 {
		o.env.Say("%d pull secrets have OpenShift's names and are left to its own controllers. Without those,", len(others.Secrets))
		o.env.Say("remove them with: %s", o.env.Command("pull-secrets uninstall --preset openshift"))
	}
	return err
}
