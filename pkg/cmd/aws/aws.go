package aws

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	return cli.Parent("aws", "Prepare and use AWS identities for EKS clusters", newPrerequisites(env), newCheck(env), newGetToken(env))
}
