// Command heartbeat-addon is a sample add-on: its manager runs on the hub, its
// agent on every managed cluster that has the add-on.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/examples/heartbeat/agent"
	"github.com/kubectl-ocm/kubectl-ocm/examples/heartbeat/hub"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "heartbeat-addon",
		Short:         "An add-on that reports a heartbeat of every managed cluster to the hub",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(manager(), agentCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "heartbeat-addon:", err)
		os.Exit(1)
	}
}

func manager() *cobra.Command {
	var options hub.Options
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Run the part on the hub: registration, permissions, certificate approval, deployment",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return hub.Run(cmd.Context(), options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Kubeconfig, "kubeconfig", "", "the hub's kubeconfig; empty means the cluster that this Pod runs on")
	flags.StringVar(&options.AddOn, "addon-name", "heartbeat", "the add-on's name")
	flags.StringVar(&options.ClusterRole, "hub-cluster-role", "heartbeat-agent",
		"the ClusterRole on the hub that an agent gets in its cluster's namespace")
	flags.StringVar(&options.Image, "agent-image", "", "the agents' image; empty means that agents are deployed by others")
	flags.DurationVar(&options.Interval, "agent-interval", 10*time.Second, "the time between two heartbeats of an agent")
	return cmd
}

func agentCommand() *cobra.Command {
	var options agent.Options
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the part on a managed cluster: heartbeats to the hub, a lease here",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Namespace = cmp.Or(options.Namespace, os.Getenv("POD_NAMESPACE"))
			return agent.Run(cmd.Context(), options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Kubeconfig, "kubeconfig", "", "the managed cluster's kubeconfig; empty means the cluster that this Pod runs on")
	flags.StringVar(&options.HubKubeconfig, "hub-kubeconfig", "/etc/hub/kubeconfig", "the file in the mounted Secret of the add-on's registration")
	flags.StringVar(&options.Cluster, "cluster-name", "", "the managed cluster's name on the hub")
	flags.StringVar(&options.AddOn, "addon-name", "heartbeat", "the add-on's name")
	flags.StringVar(&options.Namespace, "namespace", "", "where the lease is; the default is the environment variable POD_NAMESPACE")
	flags.DurationVar(&options.Interval, "interval", 10*time.Second, "the time between two heartbeats")
	_ = cmd.MarkFlagRequired("cluster-name")
	return cmd
}
