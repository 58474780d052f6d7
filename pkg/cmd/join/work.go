package join

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const (
	flagNoWork          = "no-work"
	flagWorkPermissions = "work-permissions"
)

// workFlags are the flags of the work agent. Both stay as they are unless given.
type workFlags struct {
	none        bool
	permissions string
}

func (w *workFlags) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&w.none, flagNoWork, false, "If true, leave the work agent out, so that the hub deploys nothing to this cluster")
	f.StringVar(&w.permissions, flagWorkPermissions, "",
		"What the work agent may do on this cluster: admin for everything, view, none, or the name of a ClusterRole (default admin)")
	_ = cmd.RegisterFlagCompletionFunc(flagWorkPermissions, cobra.FixedCompletions([]cobra.Completion{
		string(names.WorkPermissionsAdmin), string(names.WorkPermissionsView), string(names.WorkPermissionsNone),
	}, cobra.ShellCompDirectiveNoFileComp))
}

// value turns the flags into values.
func (w *workFlags) value(cmd *cobra.Command) (agent.Work, error) {
	var out agent.Work
	if cmd.Flags().Changed(flagNoWork) {
		out.Enabled = new(!w.none)
	}
	switch {
	case !cmd.Flags().Changed(flagWorkPermissions):
		return out, nil
	case w.none:
		return out, fmt.Errorf("--%s and --%s exclude each other: without a work agent there is nothing to permit", flagNoWork, flagWorkPermissions)
	}
	permissions, err := names.ParseWorkPermissions(w.permissions)
	if err != nil {
		return out, fmt.Errorf("--%s: %w", flagWorkPermissions, err)
	}
	out.Permissions = permissions
	return out, nil
}

// sayWorkPermissions says what the hub may deploy to this cluster.
func (o *options) sayWorkPermissions(ctx context.Context, runner agent.Runner) error {
	installed, err := runner.Klusterlet(ctx)
	if err != nil || installed == nil {
		return err
	}
	permissions, err := agent.WorkPermissions(installed)
	switch {
	case err != nil:
		return err
	case permissions == "":
		o.env.Say("There is no work agent: the hub deploys nothing to this cluster.")
	case permissions.Admin():
		o.env.Say("The hub may deploy everything to this cluster, RBAC included, as in OCM.\nLimit that with --%s.", flagWorkPermissions)
	case permissions.ClusterRole() == "":
		o.env.Say("The work agent has no permissions on this cluster but those that you grant to\nthe ServiceAccount %s.", names.WorkAgentServiceAccount(installed.Name))
	default:
		o.env.Say("The hub may do on this cluster what the ClusterRole %s permits.", permissions.ClusterRole())
	}
	return nil
}
