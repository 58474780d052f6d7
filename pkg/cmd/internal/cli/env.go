package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/utils/clock"
)

// Streams are where a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Clusteradm is the name under which the commands stand in for clusteradm.
const Clusteradm = "clusteradm"

// Env is what a command is given by the process it runs in. It is passed by
// value; the commands of one tree share Kube.
type Env struct {
	Streams

	// Name is how the user called us, as it is typed: "kubectl ocm" or
	// Clusteradm. Help, examples and next steps use it.
	Name string
	// Clock is the time. Tests set a fake one.
	Clock clock.WithTicker
	// Getenv reads the environment.
	Getenv func(string) string
	// Kube holds the connection flags of the tree; cmd.New fills it.
	Kube *Kube
}

// Interactive reports whether a person can be asked: both ends are a terminal.
func (e Env) Interactive() bool { return isTerminal(e.In) && isTerminal(e.Err) }

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth is how many columns a terminal has now. One that does not say is
// taken for a terminal that nobody has changed.
func terminalWidth(stream any) int {
	if f, ok := stream.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return columns
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
		{ID: string(GroupFleet), Title: "Build a fleet:"},
		{ID: string(GroupInspect), Title: "Look at it:"},
		{ID: string(GroupRun), Title: "Run it:"},
		{ID: string(GroupOther), Title: "Other:"},
	}
}
