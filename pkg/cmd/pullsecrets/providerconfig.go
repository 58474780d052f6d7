package pullsecrets

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/kubelet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/registry"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// part is a part of what has to be set up.
type part string

const (
	partAll     part = "all"
	partKubelet part = "kubelet"
	partRBAC    part = "rbac"
)

type providerConfigOptions struct {
	env      cli.Env
	settings kubelet.Settings
	part     part
}

func newProviderConfig(env cli.Env) *cobra.Command {
	o := &providerConfigOptions{env: env, part: partAll}
	cmd := &cobra.Command{
		Use:   "provider-config",
		Short: "Print what kubelets need to pull without Secrets",
		Long: `Print what a cluster needs to pull images with ServiceAccount tokens and without
pull secrets: the kubelet's CredentialProviderConfig, for each node, and the
permission of nodes to request tokens for the audience, for the cluster.

It needs Kubernetes 1.34, or 1.33 with the kubelet's feature gate
KubeletServiceAccountTokenForCredentialProviders, and access to the nodes.`,
		Example: fmt.Sprintf(`  # Everything, with comments
  %[1]s pull-secrets provider-config --registry registry.example.com \
      --audience registry.example.com

  # Only the permission of the nodes
  %[1]s pull-secrets provider-config --registry registry.example.com \
      --audience registry.example.com --part rbac | kubectl apply -f -`, env.Name),
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.settings.Registries, "registry", nil, "Registry host, as in the names of its images; can be repeated")
	flags.StringVar(&o.settings.Audience, "audience", "", "Audience of the tokens, which the registries must expect")
	flags.StringVar(&o.settings.Username, flagUsername, defaultUsername, "User name that is sent with the token")
	cli.NewEnum(&o.part, nil, partAll, partKubelet, partRBAC).AddTo(cmd, "part", "", "Part to print")
	return cmd
}

func (o *providerConfigOptions) run() error {
	if len(o.settings.Registries) == 0 {
		return cli.Usagef("no registry is named: use --registry HOST")
	}
	hosts, err := registry.NewHosts(o.settings.Registries, o.settings.Audience)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	for _, host := range hosts.List() {
		if host.Audience != o.settings.Audience {
			return cli.Usagef("--registry %s=%s: the kubelet requests tokens for one audience; name it with --audience", host.Name, host.Audience)
		}
	}
	if o.settings.Audience == "" {
		return cli.Usagef("--audience is missing: name the audience that the registries expect; the kubelet requests no token without one")
	}
	text, err := o.render()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.env.Out, text)
	return err
}

// Comments of the two parts.
const (
	kubeletComment = `# For each node. Write it to a file and start the kubelet with
#   --image-credential-provider-config=FILE
#   --image-credential-provider-bin-dir=DIRECTORY
# where DIRECTORY has this program under the name ` + names.CredentialProvider + `.
`
	rbacComment = `# For the cluster: nodes may request tokens for the audience, each of them those
# of the ServiceAccounts of its own Pods. Apply it with kubectl.
`
)

func (o *providerConfigOptions) render() (string, error) {
	role, binding := o.settings.Permission()
	var documents []string
	add := func(comment string, object any) error {
		data, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		documents = append(documents, comment+string(data))
		return nil
	}
	if o.part != partRBAC {
		if err := add(kubeletComment, o.settings.Config()); err != nil {
			return "", err
		}
	}
	if o.part != partKubelet {
		if err := errors.Join(add(rbacComment, role), add("", binding)); err != nil {
			return "", err
		}
	}
	return strings.Join(documents, "---\n"), nil
}

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
		RunE: func(*cobra.Command, []string) error {
			return kubelet.Answer(env.In, env.Out, username, env.Clock.Now())
		},
	}
	cmd.Flags().StringVar(&username, flagUsername, defaultUsername, "User name that is sent with the token")
	return cmd
}
