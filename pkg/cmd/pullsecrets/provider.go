package pullsecrets

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/kubelet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func newProvider(env cli.Env) *cobra.Command {
	var username string
	cmd := &cobra.Command{
		Use:   "credential-provider",
		Short: "Return the credential that a kubelet requests on stdin",
		Long: `Return the credential for an image that the kubelet requests on stdin, as its
credential provider plugin: the token of the Pod's ServiceAccount.

The kubelet finds its plugins by file name. Copy or link this program into the
directory of the kubelet's --image-credential-provider-bin-dir under the name
` + names.CredentialProvider + `; it then runs this command.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return kubelet.Answer(env.In, env.Out, username, env.Clock.Now())
		},
	}
	cmd.Flags().StringVar(&username, flagUsername, defaultUsername, "User name that is sent with the token")
	return cmd
}
