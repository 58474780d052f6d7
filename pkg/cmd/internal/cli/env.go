package cli

import (
	"cmp"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/term"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Clusteradm is the name under which the commands stand in for clusteradm.
const Clusteradm = "clusteradm"

// Env is what a command is given by the process it runs in. It is passed by
// value; the commands of one tree share Kube.
type Env struct {
	genericiooptions.IOStreams

	// Name is how the user called us, as it is typed: "kubectl ocm" or
	// Clusteradm. Help, examples and next steps use it.
	Name string
	// Clock is the time. Tests set a fake one.
	Clock clock.WithTicker
	// Getenv reads the environment.
	Getenv func(string) string
	// Kube holds the connection flags of the tree; cmd.New fills it.
	Kube *Kube
	// Drivers are the registration drivers of clusters; cmd.New fills in all that there are.
	Drivers driver.Catalog
}

// Now is the time when it is called.
func (e Env) Now() time.Time { return e.Clock.Now() }

// Interactive reports whether a person can be asked: both ends are a terminal.
func (e Env) Interactive() bool { return printers.IsTerminal(e.In) && printers.IsTerminal(e.ErrOut) }

// animated reports whether lines on stderr may be drawn over: on a terminal that is not
// dumb.
func (e Env) animated() bool { return printers.IsTerminal(e.ErrOut) && e.env("TERM") != "dumb" }

// ASCII reports whether the locale asks for plain ASCII: it is C or POSIX, by name.
func (e Env) ASCII() bool {
	locale := cmp.Or(e.env("LC_ALL"), e.env("LC_CTYPE"), e.env("LANG"))
	return locale == "C" || locale == "POSIX"
}

func (e Env) env(name string) string {
	if e.Getenv == nil {
		return ""
	}
	return e.Getenv(name)
}

// terminalWidth is how many columns a terminal has now, or the default where it
// does not say.
func terminalWidth(stream io.Writer) int {
	if size := (term.TTY{Out: stream}).GetSize(); size != nil && size.Width > 0 {
		return int(size.Width)
	}
	return Columns
}

// Group puts a command into a section of the help.
type Group string

// The sections of the help.
const (
	GroupFleet   Group = "fleet"
	GroupInspect Group = "inspect"
	GroupRun     Group = "run"
	GroupOther   Group = "other"
)

// Groups returns the sections in the order in which help shows them.
func Groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: string(GroupFleet), Title: "Manage the fleet:"},
		{ID: string(GroupInspect), Title: "Inspect and troubleshoot:"},
		{ID: string(GroupRun), Title: "Run locally and in clusters:"},
		{ID: string(GroupOther), Title: "Other commands:"},
	}
}
