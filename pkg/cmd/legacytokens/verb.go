package legacytokens

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/legacytoken"
)

// item is a Secret that a command may change.
type item struct {
	namespace, name string
	plan            legacytoken.Plan
	// act changes it.
	act func(context.Context) error
}

func (i item) String() string { return i.namespace + "/" + i.name }

// verb is a command that changes Secrets.
type verb struct {
	selection

	changes *cli.Changes
	// ready checks what a command needs of the cluster; nil means nothing.
	ready func() error
	// done says in a word what happened to a Secret.
	done string
	// items are the Secrets of a token, with what is to be done.
	items func(context.Context, *legacytoken.Inventory, *legacytoken.Token) ([]item, error)
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
		items, err := v.items(ctx, inventory, token)
		if err != nil {
			return err
		}
		for _, i := range items {
			step, err := v.step(ctx, i)
			switch {
			case err != nil:
				return err
			case step == legacytoken.ActionApply:
				done++
			case step == legacytoken.ActionReject:
				refused++
			}
		}
	}
	return v.summary(done, refused)
}

// step does what is planned for one Secret, and says what came of it.
func (v *verb) step(ctx context.Context, i item) (legacytoken.Action, error) {
	step, reason := i.plan.Action, i.plan.Reason
	if step == legacytoken.ActionApply && v.env.Kube.DryRun() != cli.DryRunClient {
		err := i.act(ctx)
		switch {
		case errors.Is(err, legacytoken.ErrChanged), errors.Is(err, legacytoken.ErrOtherBackup):
			step, reason = legacytoken.ActionReject, err.Error()
		case err != nil && v.explain != nil:
			return step, v.explain(err)
		case err != nil:
			return step, err
		}
	}
	switch step {
	case legacytoken.ActionApply:
		return step, v.changes.AddLine(cli.RefTo("secret", i.namespace, i.name, time.Time{}), v.done, "secret "+i.String()+" "+v.done)
	case legacytoken.ActionReject:
		v.env.Say("%s", cli.Fold(fmt.Sprintf("secret %s not %s: %s", i, v.done, reason), "  "))
	case legacytoken.ActionNone:
		if !v.all { // Those that were named are answered for.
			return step, v.changes.AddLine(cli.RefTo("secret", i.namespace, i.name, time.Time{}), cli.Unchanged, "secret "+i.String()+" unchanged: "+reason)
		}
	}
	return step, nil
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
