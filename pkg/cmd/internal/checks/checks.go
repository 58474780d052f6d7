package checks

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/printable"
)

// Report is what the checks of a command found, and how it is printed.
type Report struct {
	diagnose.Report

	folded bool
}

// Folded returns the report with messages that are folded to the width of a
// terminal, as those with several ARNs have to be.
func (r Report) Folded() Report {
	r.folded = true
	return r
}

// Run makes the checks in order, and explains the errors of those that could not look.
func Run(ctx context.Context, target string, steps []finding.Step) Report {
	r := diagnose.Run(ctx, target, steps)
	for i := range r.Checks {
		r.Checks[i].Outcome = explained(r.Checks[i].Outcome)
	}
	return Report{Report: r}
}

// indent is where messages begin.
const indent = "             "

// print writes the report as text. Checks that were skipped for one reason are one entry, and
// the last line counts all.
func (r Report) print(w io.Writer, style style) error {
	for i := 0; i < len(r.Checks); {
		c := r.Checks[i]
		same := alike(r.Checks[i:])
		if same > 1 {
			c.Name = fmt.Sprintf("%s, and %d more checks", c.Name, same-1)
		}
		if _, err := fmt.Fprintln(w, strings.Join(r.lines(c, style), "\n")); err != nil {
			return err
		}
		i += same
	}
	_, err := fmt.Fprintln(w, r.summary())
	return err
}

// alike is how many checks from the first on are skipped for one reason, at least 1: checks
// that need others were skipped for the reason of the first.
func alike(list []diagnose.Result) int {
	n := 1
	for n < len(list) && list[0].Status == finding.Skipped && list[n].Status == finding.Skipped &&
		(list[n].Message == list[0].Message || strings.HasPrefix(list[0].Message, diagnose.Needs) && strings.HasPrefix(list[n].Message, diagnose.Needs)) {
		n++
	}
	return n
}

// lines are those of one check. What to try is never folded: it may be a command, which a
// shell takes in one line only.
func (r Report) lines(c diagnose.Result, style style) []string {
	lines := []string{fmt.Sprintf("%2d. %s %s", c.Number, style.status(c.Status), c.Name)}
	if c.Message != "" {
		for line := range strings.SplitSeq(c.Message, "\n") {
			line = indent + excerpt.Of(printable.Line(line), cli.LongestMessage)
			if r.folded || style.terminal {
				line = cli.Fold(line, indent)
			}
			lines = append(lines, line)
		}
	}
	if c.Try != "" {
		lines = append(lines, indent+"try: "+strings.ReplaceAll(c.Try, "\n", "\n"+indent))
	}
	return lines
}

// count is how many checks have each status.
func (r Report) count() map[finding.Status]int {
	count := map[finding.Status]int{}
	for _, c := range r.Checks {
		count[c.Status]++
	}
	return count
}

// summary is a line with how many checks have each status.
func (r Report) summary() string {
	count := r.count()
	var parts []string
	for _, status := range []finding.Status{finding.OK, finding.Warning, finding.Failed, finding.Unknown, finding.Skipped} {
		if n := count[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return fmt.Sprintf("%d checks: %s", len(r.Checks), strings.Join(parts, ", "))
}

// Complete has a command make checks and print their report, and turns failures into
// the exit code.
func Complete(env cli.Env, cmd *cobra.Command, report func(cmd *cobra.Command, args []string) (Report, error)) *cobra.Command {
	out := cli.NewOutput(cli.Text)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := report(cmd, args)
		if err != nil {
			return err
		}
		if out.Machine() {
			err = out.Object(env.Out, cli.Header{Kind: "CheckReport"}, r.Report)
		} else {
			err = r.print(env.Out, styleOf(env))
		}
		if err != nil {
			return err
		}
		return r.failure()
	}
	out.AddTo(cmd)
	return cmd
}

// failure is the error about checks that did not succeed, nil if there are none.
func (r Report) failure() error {
	count := r.count()
	var parts []string
	if n := count[finding.Failed]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d checks failed", n, len(r.Checks)))
	}
	if n := count[finding.Unknown]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d checks could not be made", n, len(r.Checks)))
	}
	if len(parts) == 0 {
		return nil
	}
	code := cli.CodeBlocked
	if r.Ended != nil {
		code = cli.ExitCode(r.Ended)
	}
	return &cli.Explained{Problem: strings.Join(parts, ", and "), Code: code}
}

// explained returns the outcome of a check that could not be made with what a user reads of
// the error.
func explained(o finding.Outcome) finding.Outcome {
	if o.Cause == nil {
		return o
	}
	err := cli.Explain(o.Cause)
	message := err.Error()
	if o.Message != "" {
		message = o.Message + ": " + message
	}
	return finding.Outcome{Status: o.Status, Message: message, Try: cli.HintOf(err)}
}
