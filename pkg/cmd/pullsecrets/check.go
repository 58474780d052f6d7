package pullsecrets

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/pullsecrets"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	diagnosis "github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/pullsecrets"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
)

func newCheck(env cli.Env) *cobra.Command {
	return checks.Complete(env, &cobra.Command{
		Use:   "check",
		Short: "Check whether image pulls will work",
		Long: `Check whether image pulls will work: the controller and its leader, the pull
secret of each selected ServiceAccount, and the Pods that wait for one. Nothing
is changed.

It ends with 3 when something is wrong.`,
	}, func(cmd *cobra.Command, _ []string) (checks.Report, error) {
		c, err := env.Kube.Client()
		if err != nil {
			return checks.Report{}, err
		}
		scope := diagnose.Scope{Commands: env, Client: c, Clock: env.Clock, Warn: env.Warn}
		_, server := env.Kube.Target()
		return checks.Run(cmd.Context(), "image pull secrets of "+server, diagnosis.Steps(scope, configOf)).Folded(), nil
	})
}

// configOf reads a controller's arguments.
func configOf(args []string) (imagepull.Config, error) {
	var flags pullsecrets.Flags
	flags.AddTo(&cobra.Command{})
	if err := flags.Keep(args); err != nil {
		return imagepull.Config{}, err
	}
	return flags.Config()
}
