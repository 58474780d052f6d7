// Package version is the "version" command. It tells the release of this
// binary and of what runs in a cluster, and whether the two fit together.
package version

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
)

type options struct {
	env    cli.Env
	out    *cli.Output
	client bool
}

// New returns the command.
func New(env cli.Env) *cobra.Command {
	o := &options{env: env, out: cli.NewOutput(cli.Text, cli.JSON, cli.YAML)}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary and of the cluster",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return o.run() },
	}
	cmd.Flags().BoolVar(&o.client, "client", false, "print the version of this binary only")
	o.out.AddTo(cmd)
	return cmd
}

// release is the stable schema of one side's version.
type release struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

type versions struct {
	Client release `json:"client"`
}

func (o *options) run() error {
	v := versions{Client: release{Version: "v" + buildinfo.Version, Commit: buildinfo.Commit()}}
	if o.out.Machine() {
		return o.out.Object(o.env.Out, v)
	}
	_, err := fmt.Fprintf(o.env.Out, "Client: %s\n", v.Client.Version)
	return err
}
