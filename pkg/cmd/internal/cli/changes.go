package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Unchanged is the action of a command that found an object as it should be.
const Unchanged = "unchanged"

// Change is the stable schema of what a command did to an object of the API.
type Change struct {
	// Object is the type of the object, TYPE.GROUP.
	Object string `json:"object"`
	Action string `json:"action"`

	ref Ref
}

// Changes are what a command did: a line for each, or a list in the other formats of -o.
type Changes struct {
	env  Env
	out  *Output
	list []Change
}

// NewChanges returns the changes of a command that has made none yet.
func NewChanges(env Env) *Changes { return ChangesFor(env, NewOutput(Text, Name)) }

// ChangesFor is NewChanges for a command with further formats.
func ChangesFor(env Env, out *Output) *Changes { return &Changes{env: env, out: out} }

// AddTo registers -o.
func (c *Changes) AddTo(cmd *cobra.Command) { c.out.AddTo(cmd) }

// Text reports whether the command prints lines.
func (c *Changes) Text() bool { return c.out.Format == Text }

// Add notes what was done to an object, and prints it as a line.
func (c *Changes) Add(ref Ref, action string) error {
	return c.AddLine(ref, action, ref.Full()+" "+action)
}

// AddLine is Add with a line of the command's own.
func (c *Changes) AddLine(ref Ref, action, line string) error {
	c.Note(ref, action)
	if action == Unchanged {
		return c.Print(line)
	}
	return c.Line(line)
}

// Note is Add without a line.
func (c *Changes) Note(ref Ref, action string) {
	c.list = append(c.list, Change{Object: ref.Type, Action: action, ref: ref})
}

// Line prints what took place, or would in a dry run. Other formats leave it out.
func (c *Changes) Line(line string) error { return c.Print(line + c.env.Kube.DryRunSuffix()) }

// Plan prints what would take place, a line each.
func (c *Changes) Plan(lines ...string) error {
	for _, line := range lines {
		if err := c.Line(line); err != nil {
			return err
		}
	}
	return nil
}

// Print prints a text that other formats leave out.
func (c *Changes) Print(text string) error {
	if !c.Text() {
		return nil
	}
	_, err := fmt.Fprintln(c.env.Out, text)
	return err
}

// End prints what was done in the formats other than lines, also where the command
// failed afterwards, and returns err.
func (c *Changes) End(err error) error {
	if c.Text() || err != nil && len(c.list) == 0 {
		return err
	}
	printed := PrintList(c.env.Out, c.out, Kind[Change]{Name: "Change", Ref: func(c Change) Ref { return c.ref }}, c.list, nil)
	if printed == nil {
		return err
	}
	return errors.Join(printed, err)
}
