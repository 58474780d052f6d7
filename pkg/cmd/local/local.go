//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	c := &command{env: env}
	cmd := cli.Parent("local", "Run a hub and managed clusters on this machine, without Docker",
		c.up(), c.down(), c.status(), c.kubeconfig(), c.logs(), c.supervise(), c.container())
	cmd.Long = `Run a hub and managed clusters on this machine, without Docker and without root.

Each cluster is a real Kubernetes control plane and one node that runs Pods as
local processes. There is no registry and no cluster network: an image is an
executable (see "local up --image"), a Pod has a loopback address of its own,
and there is no exec. Everything is in one directory; "local down" leaves
nothing.`
	cmd.PersistentFlags().StringVar(&c.dir, "dir", "", "directory of the clusters (default below your data directory)")
	return cmd
}

// command is what the subcommands share.
type command struct {
	env cli.Env
	dir string
}

// directory is the value of --dir or its default.
func (c *command) directory() (string, error) {
	if c.dir != "" {
		return absolute(c.dir)
	}
	return local.DefaultDir(c.env.Getenv)
}

// withDir runs fn with the directory and explains its error.
func (c *command) withDir(fn func(dir string) error) error {
	dir, err := c.directory()
	if err == nil {
		err = fn(dir)
	}
	return c.explain(err)
}

// explain adds what to do next and the exit code.
func (c *command) explain(err error) error {
	var problem *local.HintedError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, local.ErrNoClusters):
		return cli.NotFoundf(c.line("local up"), "%v", err)
	case errors.Is(err, local.ErrUnknownCluster):
		return cli.NotFoundf("list the clusters with: "+c.line("local status"), "%v", err)
	case errors.As(err, &problem):
		return cli.Blockedf(problem.Todo, "%v", err)
	}
	return err
}

// line is one of our command lines, for messages, about the same directory.
func (c *command) line(args ...string) string {
	if c.dir != "" {
		args = append(args, "--dir", cli.Quoted(c.dir))
	}
	return c.env.Elsewhere(args...)
}

// self is the command line of one of the hidden subcommands.
func self(args ...string) ([]string, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find our own executable: %w", err)
	}
	return append([]string{executable, "local"}, args...), nil
}

// completeClusters completes the name of a cluster as the first argument.
func (c *command) completeClusters(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.clusters(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
}

func (c *command) clusters(ctx context.Context) []cobra.Completion {
	dir, err := c.directory()
	if err != nil {
		return nil
	}
	statuses, err := local.Status(ctx, dir)
	if err != nil {
		return nil
	}
	var names []cobra.Completion
	for _, s := range statuses {
		names = append(names, s.Name)
	}
	return names
}
