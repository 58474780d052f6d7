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
		Short: "Run the hub controller: registration, permissions, certificate approval, deployment",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return hub.Run(cmd.Context(), options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Kubeconfig, "kubeconfig", "", "Path to the kubeconfig of the hub; the default is the cluster of the Pod")
	flags.StringVar(&options.AddOn, "addon-name", "heartbeat", "Name of the add-on")
	flags.StringVar(&options.ClusterRole, "hub-cluster-role", "heartbeat-agent",
		"ClusterRole on the hub that is bound to an agent in its cluster's namespace")
	flags.StringVar(&options.Image, "agent-image", "", "Image of the agents; if empty, the agents are not deployed")
	flags.DurationVar(&options.Interval, "agent-interval", 10*time.Second, "Interval between two heartbeats of an agent")
	return cmd
}

func agentCommand() *cobra.Command {
	var options agent.Options
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the agent on a managed cluster: heartbeats to the hub, a lease on the cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Namespace = cmp.Or(options.Namespace, os.Getenv("POD_NAMESPACE"))
			return agent.Run(cmd.Context(), options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Kubeconfig, "kubeconfig", "", "Path to the kubeconfig of the managed cluster; the default is the cluster of the Pod")
	flags.StringVar(&options.HubKubeconfig, "hub-kubeconfig", "/etc/hub/kubeconfig", "Path to the kubeconfig in the mounted Secret of the add-on's registration")
	flags.StringVar(&options.Cluster, "cluster-name", "", "Name of the managed cluster on the hub")
	flags.StringVar(&options.AddOn, "addon-name", "heartbeat", "Name of the add-on")
	flags.StringVar(&options.Namespace, "namespace", "", "Namespace of the lease; the default is the environment variable POD_NAMESPACE")
	flags.DurationVar(&options.Interval, "interval", 10*time.Second, "Interval between two heartbeats")
	_ = cmd.MarkFlagRequired("cluster-name")
	return cmd
}
