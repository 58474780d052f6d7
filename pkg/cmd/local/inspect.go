//go:build linux

package local

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local"
)

const (
	upTimeout   = 5 * time.Minute
	downTimeout = 2 * time.Minute
)

func (c *command) down() *cobra.Command {
	timeout := cli.Timeout(downTimeout)
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop all clusters and remove everything that is theirs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := timeout.Context(cmd.Context())
			defer cancel()
			return c.withDir(func(dir string) error { return c.runDown(ctx, dir) })
		},
	}
	timeout.AddTo(cmd)
	return cmd
}

func (c *command) runDown(ctx context.Context, dir string) error {
	var removed []string
	err := c.env.Progress().Step(ctx, "Stopping the local clusters", func(ctx context.Context, _ cli.Say) error {
		var err error
		removed, err = local.Down(ctx, dir, c.env.Clock)
		return err
	})
	if err != nil {
		return err
	}
	if len(removed) == 0 {
		c.env.Say("There are no local clusters in %s.", dir)
		return nil
	}
	for _, name := range removed {
		if _, err := fmt.Fprintf(c.env.Out, "cluster/%s removed\n", name); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) status() *cobra.Command {
	out := cli.ListOutput()
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the clusters",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withDir(func(dir string) error {
				statuses, err := local.Status(cmd.Context(), dir)
				if err != nil {
					return err
				}
				kind := cli.Kind[local.ClusterStatus]{Name: "LocalCluster", Ref: func(s local.ClusterStatus) cli.Ref {
					return cli.RefTo("cluster", "", s.Name, s.StartedAt)
				}}
				return cli.PrintList(c.env.Out, out, kind, statuses, c.columns())
			})
		},
	}
	out.AddTo(cmd)
	return cmd
}

func (c *command) columns() []cli.Column[local.ClusterStatus] {
	type status = local.ClusterStatus
	now := c.env.Clock.Now()
	return []cli.Column[status]{
		{Header: "name", Value: func(s status) string { return s.Name }},
		{Header: "status", Value: func(s status) string { return string(s.Phase) }},
		{Header: "pods", Value: func(s status) string {
			if s.PodsTotal < 0 {
				return ""
			}
			return fmt.Sprintf("%d/%d", s.PodsRunning, s.PodsTotal)
		}},
		{Header: "restarts", Value: func(s status) string { return strconv.Itoa(restarts(s)) }},
		{Header: "age", Value: func(s status) string {
			if s.StartedAt.IsZero() || s.Phase == local.Stopped {
				return ""
			}
			return duration.ShortHumanDuration(now.Sub(s.StartedAt))
		}},
		{Header: "server", Value: func(s status) string { return s.URL }},
		{Header: "node", Wide: true, Value: func(s status) string { return s.NodeIP }},
		{Header: "pid", Wide: true, Value: func(s status) string { return strconv.Itoa(s.PID) }},
		{Header: "directory", Wide: true, Value: func(s status) string { return s.Dir }},
		{Header: "message", Value: message},
	}
}

func restarts(s local.ClusterStatus) int {
	n := 0
	for _, component := range s.Components {
		n += component.Restarts
	}
	return n
}

// message is what is wrong.
func message(s local.ClusterStatus) string {
	var words []string
	if s.Message != "" {
		words = append(words, strings.ReplaceAll(s.Message, "\n", " "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Components)) {
		if m := s.Components[name].Message; m != "" {
			words = append(words, name+": "+m)
		}
	}
	return strings.Join(words, "; ")
}

func (c *command) kubeconfig() *cobra.Command {
	var path bool
	cmd := &cobra.Command{
		Use:   "kubeconfig [CLUSTER]",
		Short: "Print a kubeconfig: of one cluster, or with a context for each",
		Example: `  export KUBECONFIG=$(` + c.env.Name + ` local kubeconfig --path)
  kubectl --context cluster1 get nodes`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeClusters,
		RunE: func(_ *cobra.Command, args []string) error {
			cluster := ""
			if len(args) > 0 {
				cluster = args[0]
			}
			return c.withDir(func(dir string) error {
				file, err := local.Kubeconfig(dir, cluster)
				if err == nil && path {
					_, err = fmt.Fprintln(c.env.Out, file)
					return err
				}
				if err != nil {
					return err
				}
				return c.printFile(file)
			})
		},
	}
	cmd.Flags().BoolVar(&path, "path", false, "print the path of the file instead of its content")
	return cmd
}

// printFile prints a file that the user asked to see.
func (c *command) printFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	_, err = c.env.Out.Write(data)
	return err
}

type logOptions struct {
	component string
	tail      int64
	pod       corev1.PodLogOptions
}

func (c *command) logs() *cobra.Command {
	o := &logOptions{}
	cmd := &cobra.Command{
		Use:   "logs CLUSTER (POD | --component NAME)",
		Short: "Print the log of a Pod or of a component of a cluster",
		Long: `Print the log of a Pod or of a component of a cluster. POD is a name, with its
namespace before a slash if several Pods are called so; the beginning of a name
is enough.`,
		Example: `  ` + c.env.Name + ` local logs hub cluster-manager
  ` + c.env.Name + ` local logs cluster1 --component kube-apiserver`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withDir(func(dir string) error {
				request, err := o.request(dir, args)
				if err != nil {
					return err
				}
				return local.Logs(cmd.Context(), request, c.env.Out)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.component, "component", "", "print the log of a component: "+strings.Join(local.Components(), ", "))
	flags.StringVarP(&o.pod.Container, "container", "c", "", "the container, if the Pod has several")
	flags.BoolVarP(&o.pod.Follow, "follow", "f", false, "Follow the log")
	flags.BoolVarP(&o.pod.Previous, "previous", "p", false, "the log of the start before the latest")
	flags.BoolVar(&o.pod.Timestamps, "timestamps", false, "begin each line with its time")
	flags.Int64Var(&o.tail, "tail", -1, "the number of lines from the end; -1 is all")
	_ = cmd.RegisterFlagCompletionFunc("component", cobra.FixedCompletions(local.Components(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *logOptions) request(dir string, args []string) (local.LogRequest, error) {
	request := local.LogRequest{Dir: dir, Cluster: args[0], Component: o.component, Options: o.pod}
	if len(args) > 1 {
		request.Pod = args[1]
	}
	switch {
	case (request.Pod == "") == (request.Component == ""):
		return request, cli.Usagef("name either a Pod or a --component (%s)", strings.Join(local.Components(), ", "))
	case request.Component != "" && (o.pod.Follow || o.pod.Previous || o.pod.Timestamps || o.pod.Container != ""):
		return request, cli.Usagef("--follow, --previous, --timestamps and --container are for Pods; of a component only --tail is")
	case request.Component != "" && !slices.Contains(local.Components(), request.Component):
		return request, cli.Usagef("there is no component %q; there are: %s", request.Component, strings.Join(local.Components(), ", "))
	}
	if o.tail >= 0 {
		request.Options.TailLines = &o.tail
	}
	return request, nil
}
