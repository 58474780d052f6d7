package fleet

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/takeover"
)

const (
	flagTakeOver = "take-over"
	flagAccept   = "accept-changes"
)

// TakeOverFlags are the flags of commands that replace an installation of OCM.
type TakeOverFlags struct {
	Enabled  bool
	accepted []string
}

// AddTo registers the flags. what is replaced.
func (f *TakeOverFlags) AddTo(cmd *cobra.Command, what string) {
	flags := cmd.Flags()
	flags.BoolVar(&f.Enabled, flagTakeOver, false, "Replace "+what+" of OCM in place; with --dry-run, print the steps")
	flags.StringSliceVar(&f.accepted, flagAccept, nil, "Names of the changes that a take-over makes and that are accepted")
}

// Value returns what is to be replaced, nil for nothing.
func (f *TakeOverFlags) Value() (*install.TakeOver, error) {
	if !f.Enabled && len(f.accepted) > 0 {
		return nil, cli.Usagef("--%s needs --%s", flagAccept, flagTakeOver)
	}
	if !f.Enabled {
		return nil, nil
	}
	return &install.TakeOver{Accepted: f.accepted}, nil
}

// width is how wide a plan is printed.
const width = 80

// PrintTakeOver prints a plan. It is an error of what is in the way if the take-over
// would not start.
func PrintTakeOver(env cli.Env, out *cli.Output, plan takeover.Plan) error {
	if out.Machine() {
		if err := out.Object(env.Out, cli.Header{Kind: "TakeOverPlan"}, plan); err != nil {
			return err
		}
	} else if err := writePlan(env.Out, plan); err != nil {
		return err
	}
	unaccepted := plan.Unaccepted()
	switch {
	case len(plan.Refused) > 0:
		return cli.Blockedf("see what the plan says about it; nothing was changed", "the take-over would not start")
	case len(unaccepted) > 0:
		return cli.Blockedf(fmt.Sprintf("add --%s=%s; nothing was changed", flagAccept, strings.Join(unaccepted, ",")), "the take-over would not start before its changes are accepted")
	}
	return nil
}

func writePlan(w io.Writer, plan takeover.Plan) error {
	var b strings.Builder
	if plan.From == "" {
		b.WriteString("There is nothing of OCM to take over; the command would do what it does without\n--take-over.\n")
	} else {
		b.WriteString(fold(0, "Replace "+plan.From+":"))
		writeSteps(&b, plan)
	}
	for _, c := range plan.Changes {
		state := "not accepted"
		if c.Accepted {
			state = "accepted"
		}
		b.WriteString(fold(0, fmt.Sprintf("Change %s (%s):", c.Name, state)) + fold(4, c.Message+"."))
	}
	for _, refused := range plan.Refused {
		b.WriteString(fold(0, "In the way:") + fold(4, refused+"."))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeSteps numbers the steps, with the installation in their middle.
func writeSteps(b *strings.Builder, plan takeover.Plan) {
	number := 0
	write := func(steps []takeover.Step) {
		for _, step := range steps {
			number++
			fmt.Fprintf(b, "%2d. %s\n%s", number, step.Title, fold(4, step.Why))
			for _, object := range step.Objects {
				b.WriteString(fold(4, "- "+object))
			}
		}
	}
	write(plan.Before)
	write([]takeover.Step{{Title: "Install this release, " + buildinfo.Version + ", and wait until it works"}})
	write(plan.After)
}

// fold breaks a text into indented lines. A word that is longer than a line is not
// broken.
func fold(indent int, text string) string {
	var b strings.Builder
	line := ""
	flush := func() {
		if line != "" {
			b.WriteString(strings.Repeat(" ", indent) + line + "\n")
		}
	}
	for word := range strings.FieldsSeq(text) {
		if line != "" && indent+len(line)+1+len(word) > width {
			flush()
			line = word
			continue
		}
		line = strings.TrimSpace(line + " " + word)
	}
	flush()
	return b.String()
}
