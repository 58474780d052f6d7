package legacytokens

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/legacytoken"
)

// verb is a command that changes Secrets.
type verb struct {
	selection

	changes *cli.Changes
	// ready checks what a command needs of the cluster; nil means nothing.
	ready func() error
	// done says in a word what happened to a Secret.
	done string
	// tasks are those of a token.
	tasks func(context.Context, *legacytoken.Inventory, *legacytoken.Token) ([]legacytoken.Task, error)
	// explain completes the error about a Secret; nil means as it is.
	explain func(error) error
}

// addTo registers the flags of a command that changes Secrets.
func (v *verb) addTo(cmd *cobra.Command) {
	v.selection.addTo(cmd)
	cmd.Args = cobra.ArbitraryArgs
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().BoolVar(&v.all, "all", false, "all legacy tokens, as far as the other flags select them")
	v.changes = cli.NewChanges(v.env)
	v.changes.AddTo(cmd)
	v.env.Kube.AddPreviewFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := v.parse(args); err != nil {
			return err
		}
		return v.changes.End(v.run(cmd.Context()))
	}
}

// run goes through the tokens. A rejection is no reason to leave out the others; an
// error is.
func (v *verb) run(ctx context.Context) error {
	if v.ready != nil {
		if err := v.ready(); err != nil {
			return err
		}
	}
	inventory, err := v.gather(ctx)
	if err != nil {
		return err
	}
	done, refused := 0, 0
	for _, token := range inventory.Tokens {
		tasks, err := v.tasks(ctx, inventory, token)
		if err != nil {
			return err
		}
		for _, task := range tasks {
			action, err := v.step(ctx, task)
			switch {
			case err != nil:
				return err
			case action == legacytoken.ActionApply:
				done++
			case action == legacytoken.ActionReject:
				refused++
			}
		}
	}
	return v.summary(done, refused)
}

// step does a task, unless it is a client-side dry run, and prints what came of it.
func (v *verb) step(ctx context.Context, task legacytoken.Task) (legacytoken.Action, error) {
	plan := task.Plan
	if v.env.Kube.DryRun() != cli.DryRunClient {
		var err error
		if plan, err = task.Do(ctx); err != nil && v.explain != nil {
			err = v.explain(err)
		}
		if err != nil {
			return plan.Action, err
		}
	}
	ref := cli.RefTo("secret", task.Secret.Namespace, task.Secret.Name, time.Time{})
	switch plan.Action {
	case legacytoken.ActionApply:
		return plan.Action, v.changes.AddLine(ref, v.done, "secret "+task.Secret.String()+" "+v.done)
	case legacytoken.ActionReject:
		v.env.Say("%s", cli.Fold(fmt.Sprintf("secret %s not %s: %s", task.Secret, v.done, plan.Reason), "  "))
	case legacytoken.ActionNone:
		if !v.all { // Those that were named are answered for.
			return plan.Action, v.changes.AddLine(ref, cli.Unchanged, "secret "+task.Secret.String()+" unchanged: "+plan.Reason)
		}
	}
	return plan.Action, nil
}

// summary says what to do next, and is an error if something was refused.
func (v *verb) summary(done, refused int) error {
	if done == 0 && refused == 0 && v.all {
		v.env.Say("There is nothing to do %s.", v.where())
	}
	if done > 0 && v.env.Kube.DryRun() != cli.DryRunNone {
		v.env.Say("Nothing was changed%s. Add --dry-run=none to do it.", v.env.Kube.DryRunSuffix())
	}
	switch refused {
	case 0:
		return nil
	case 1:
		return cli.Blockedf("", "1 Secret was not %s", v.done)
	}
	return cli.Blockedf("", "%d Secrets were not %s", refused, v.done)
}
