package create

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/works"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/delivery"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

type workOptions struct {
	env cli.Env
	out *cli.Output
	// stage is what to wait for; empty for nothing.
	stage     report.Stage
	wait      cli.Wait
	files     works.Files
	delivery  delivery.Delivery
	choice    delivery.Choice
	selector  string
	placement string
	executor  string
	set       bool
	yes       cli.Yes
}

func newWork(env cli.Env) *cobra.Command {
	o := &workOptions{env: env, out: cli.NewOutput(cli.Text, cli.Name), files: works.NewFiles(), wait: cli.Wait{Timeout: cli.Timeout(5 * time.Minute)}}
	cmd := &cobra.Command{
		Use:   "work NAME -f FILE",
		Short: "Deploy manifests to managed clusters with a ManifestWork",
		Long: `Deploy manifests to managed clusters with a ManifestWork.

The command creates one ManifestWork per cluster, in the cluster's namespace on
the hub. The work agent of the cluster applies the manifests and reports what
became of them.

Clusters are named (--clusters), chosen by a placement (--placement), or chosen
by their labels (--selector). --replicas limits the labels to that many
clusters: those that have the ManifestWork already, then clusters that are
available, then by name. The choice is made once, when the command runs.

With --replicaset the command creates a ManifestWorkReplicaSet in the namespace
of the placement instead, with which the hub creates the ManifestWorks, and
follows the placement when it chooses other clusters. The hub needs the feature
gate ManifestWorkReplicaSet.

The command is idempotent. A ManifestWork with other manifests is replaced only
with --overwrite, which also deletes the ManifestWork on clusters that the
labels or the placement no longer choose. Nothing is changed if one of the
clusters cannot get the ManifestWork.`,
		Example: fmt.Sprintf(`  # Deploy the manifests of a folder, and wait until they are ready
  %[1]s create work app --clusters cluster1 -f app/ --wait

  # Deploy to two of the clusters with a label
  %[1]s create work app -l env=prod --replicas 2 -f app/

  # Replace the manifests, and move to where the placement points now
  %[1]s create work app --placement default/app -f app/ --overwrite

  # Have the hub follow the placement
  %[1]s create work app --placement default/app --replicaset -f app/

  # Put the ManifestWork into a repository; no hub is needed for that
  %[1]s create work app --clusters cluster1 -f app/ \
      --dry-run=client > app.yaml`, env.Name),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: works.CompleteNames(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.delivery.Name = args[0]
			if err := o.complete(); err != nil {
				return works.Explain(env, err)
			}
			return works.Explain(env, o.run(cmd.Context()))
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *workOptions) addFlags(cmd *cobra.Command) {
	o.files.AddTo(cmd)
	works.AddClustersFlag(o.env, cmd, &o.choice.Clusters, "Names of the clusters, separated by commas")
	f := cmd.Flags()
	f.StringVarP(&o.selector, "selector", "l", "", "Labels of the clusters")
	f.IntVar(&o.choice.Replicas, "replicas", 0, "Number of the clusters with these labels; 0 means all")
	f.StringVar(&o.placement, "placement", "", "Placement that chooses the clusters, NAMESPACE/NAME")
	f.BoolVar(&o.set, "replicaset", false, "If true, create a ManifestWorkReplicaSet for --placement, which the hub keeps following")
	f.StringVar(&o.executor, "executor", "", "ServiceAccount of the managed clusters, NAMESPACE/NAME, with whose permissions the manifests are applied (default: those of the agent)")
	f.BoolVar(&o.delivery.Overwrite, "overwrite", false, "Replace ManifestWorks that exist with other manifests")
	cli.AddYesFlag(f, &o.yes)
	stages := cli.NewEnum(&o.stage, map[string]report.Stage{"true": report.Ready, "false": ""}, report.Ready, report.Applied)
	stages.AddTo(cmd, "wait", "", "How far to wait: until the resources are ready, or the manifests applied").NoOptDefVal = string(report.Ready)
	o.wait.Timeout.AddTo(cmd)
	o.out.AddTo(cmd)
	o.env.Kube.AddDryRunFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("clusters", "selector", "placement")
}

// complete turns the flags into values.
func (o *workOptions) complete() error {
	if problems := validation.IsDNS1123Subdomain(o.delivery.Name); len(problems) > 0 {
		return cli.Usagef("invalid name %q: %s", o.delivery.Name, strings.Join(problems, "; "))
	}
	if err := o.completeChoice(); err != nil {
		return err
	}
	if !o.files.Given() {
		return cli.Usagef("name the manifests with --filename")
	}
	for flag, target := range map[string]*client.ObjectKey{"placement": &o.choice.Placement, "executor": &o.delivery.Executor} {
		if err := o.namespaced(flag, target); err != nil {
			return err
		}
	}
	var err error
	if o.delivery.Manifests, err = o.files.Read(); err != nil {
		return err
	}
	return o.delivery.Validate()
}

// completeChoice reads the flags that choose the clusters.
func (o *workOptions) completeChoice() error {
	if err := works.ValidateClusters(&o.choice.Clusters); err != nil {
		return err
	}
	switch {
	case len(o.choice.Clusters) == 0 && o.placement == "" && o.selector == "":
		return cli.Usagef("choose the clusters with --clusters, --selector or --placement")
	case o.set && o.placement == "":
		return cli.Usagef("--replicaset needs --placement")
	case o.choice.Replicas < 0 || o.choice.Replicas > 0 && o.selector == "":
		return cli.Usagef("--replicas is a number of clusters and needs --selector")
	case o.selector == "":
		return nil
	}
	var err error
	if o.choice.Selector, err = labels.Parse(o.selector); err != nil {
		return cli.Usagef("--selector: %v", err)
	}
	return nil
}

// namespaced reads a flag that names an object in a namespace.
func (o *workOptions) namespaced(flag string, target *client.ObjectKey) error {
	text := map[string]string{"placement": o.placement, "executor": o.executor}[flag]
	if text == "" {
		return nil
	}
	name, ok := cli.NamespacedName(text)
	if !ok {
		return cli.Usagef("--%s: %q is not NAMESPACE/NAME", flag, text)
	}
	*target = name
	return nil
}

func (o *workOptions) run(ctx context.Context) error {
	if o.env.Kube.DryRun() == cli.DryRunClient && len(o.choice.Clusters) > 0 {
		return fleet.PrintObjects(o.env.Out, o.out, o.delivery.Render(o.choice.Clusters))
	}
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	hub, err := works.Hub(ctx, o.env)
	if err != nil {
		return err
	}
	if o.set {
		return o.runSet(ctx, hub)
	}
	return o.runCopies(ctx, hub)
}

// runCopies delivers the work with one ManifestWork per cluster.
func (o *workOptions) runCopies(ctx context.Context, hub delivery.Hub) error {
	targets, err := hub.Choose(ctx, o.delivery.Name, o.choice)
	if clusters, ok := errors.AsType[*delivery.ClustersError](err); ok && clusters.Unknown {
		near := fleet.NearCluster(ctx, hub.Client, clusters.Clusters[0], "list the clusters with: "+o.env.Command("get clusters"))
		return cli.NotFoundf(near, "%v", clusters)
	}
	if err != nil {
		return err
	}
	if len(targets.Clusters) == 0 && len(targets.Left) == 0 {
		return o.noneChosen()
	}
	steps, err := hub.Plan(ctx, o.delivery, targets)
	if exists, ok := errors.AsType[*delivery.ExistsError](err); ok && o.env.Name == cli.Clusteradm {
		return o.sayExisting(exists)
	}
	if err != nil {
		return err
	}
	if err := o.confirm(steps); err != nil {
		return err
	}
	if o.env.Kube.DryRun() == cli.DryRunClient {
		return o.preview(steps)
	}
	if err := o.carry(ctx, hub, steps); err != nil {
		return err
	}
	o.sayLeft(targets)
	return o.await(ctx, hub, targets)
}

// noneChosen is an error about labels, which may be misspelled. A placement may well
// choose no cluster.
func (o *workOptions) noneChosen() error {
	if o.placement == "" {
		return cli.NotFoundf("see the labels with: "+o.env.Command("get clusters -o yaml"),
			"no accepted cluster has the labels %s; nothing was changed", o.selector)
	}
	o.env.Say("Placement %s chooses no cluster; nothing was changed.", o.placement)
	return nil
}

// sayExisting is how scripts for clusteradm learn that a work exists: it is left as it is.
func (o *workOptions) sayExisting(exists *delivery.ExistsError) error {
	for _, cluster := range exists.Clusters {
		if _, err := fmt.Fprintf(o.env.Out, "work %s in cluster %s already exists\n", exists.Name, cluster); err != nil {
			return err
		}
	}
	return nil
}

// confirm asks before copies are deleted.
func (o *workOptions) confirm(steps []delivery.Step) error {
	var removed []string
	for _, step := range steps {
		if step.Action == delivery.Remove {
			removed = append(removed, step.Work.Namespace)
		}
	}
	if len(removed) == 0 {
		return nil
	}
	return o.env.Confirm(o.yes, fmt.Sprintf("Delete ManifestWork %s and what it deployed on %s?", o.delivery.Name, excerpt.List(removed, ", ")))
}

// preview prints the ManifestWorks as they would be sent, and what would be deleted.
func (o *workOptions) preview(steps []delivery.Step) error {
	var objects []client.Object
	for _, step := range steps {
		if step.Action == delivery.Remove {
			o.env.Say("%s would be deleted", works.Ref(step.Work.Namespace, step.Work.Name, time.Time{}).Full())
			continue
		}
		step.Work.ManagedFields = nil
		objects = append(objects, step.Work)
	}
	return fleet.PrintObjects(o.env.Out, o.out, objects)
}

// result is the stable schema of what the command did to one copy.
type result struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	Action  string `json:"action"`
}

func (r result) ref() cli.Ref { return works.Ref(r.Cluster, r.Name, time.Time{}) }

// carry makes the changes and prints each; what was done before one that fails is
// printed as well.
func (o *workOptions) carry(ctx context.Context, hub delivery.Hub, steps []delivery.Step) error {
	var (
		results []result
		failed  error
	)
	for _, step := range steps {
		var action delivery.Action
		if action, failed = hub.Carry(ctx, o.delivery, step); failed != nil {
			break
		}
		results = append(results, result{Cluster: step.Work.Namespace, Name: step.Work.Name, Action: string(action)})
	}
	return errors.Join(o.print(results), failed)
}

func (o *workOptions) print(results []result) error {
	if o.out.Format != cli.Text {
		return cli.PrintList(o.env.Out, o.out, cli.Kind[result]{Name: "WorkResult", Ref: result.ref}, results, nil)
	}
	for _, r := range results {
		if _, err := fmt.Fprintf(o.env.Out, "%s %s%s\n", r.ref().Full(), r.Action, o.env.Kube.DryRunSuffix()); err != nil {
			return err
		}
	}
	return nil
}

// sayLeft names the clusters that keep a copy without being chosen any more.
func (o *workOptions) sayLeft(targets delivery.Targets) {
	if len(targets.Left) == 0 || o.delivery.Overwrite {
		return
	}
	o.env.Say("No longer chosen, and unchanged: %s. Delete the ManifestWork there with:", excerpt.List(targets.Left, ", "))
	o.env.Say("  %s", o.env.Command("delete", "work", o.delivery.Name, "--clusters", strings.Join(targets.Left, ",")))
}

// await waits, if asked to, for all copies.
func (o *workOptions) await(ctx context.Context, hub delivery.Hub, targets delivery.Targets) error {
	if o.stage == "" || o.env.Kube.DryRun() != cli.DryRunNone || len(targets.Clusters) == 0 {
		return nil
	}
	title := fmt.Sprintf("Waiting for %s on %s", o.delivery.Name, excerpt.List(targets.Clusters, ", "))
	err := o.env.Progress().Step(ctx, title, func(ctx context.Context, say cli.Say) error {
		return hub.Await(ctx, o.delivery.Name, targets.Clusters, o.stage, func(cluster, message string) { say("%s: %s", cluster, message) })
	})
	if err == nil {
		return nil
	}
	try := o.env.Command("check", "work", o.delivery.Name, "--cluster", targets.Clusters[0])
	return o.wait.TimedOut(err, "ManifestWork "+o.delivery.Name+" ("+delivery.Unmet(err)+")", try)
}
