//go:build linux

package local

import (
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/sandbox"
)

// Names of the subcommands that our own processes are started as.
const (
	superviseName = "supervise"
	containerName = "container"
)

func (c *command) supervise() *cobra.Command {
	var cluster string
	cmd := &cobra.Command{
		Use:    superviseName,
		Short:  "Be the supervisor of a local cluster",
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			container, err := self(containerName)
			if err != nil {
				return err
			}
			return local.Supervise(cmd.Context(), local.SupervisorOptions{
				Dir: c.dir, Cluster: cluster, Container: container, Clock: c.env.Clock, Log: klog.Background(),
			})
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "name of the cluster")
	_ = cmd.MarkFlagRequired("cluster")
	return cmd
}

func (c *command) container() *cobra.Command {
	return &cobra.Command{
		Use:    containerName,
		Short:  "Become the first process of a container",
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return sandbox.Enter() },
	}
}
