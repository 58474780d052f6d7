package join

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

type options struct {
	env          cli.Env
	wait         cli.Wait
	workload     flags.Workload
	gates        *flags.Gates
	compat       *flags.Compat
	hub          hubFlags
	registration registrationFlags
	skip         []string
	force        bool
	file         string
	refresh      bool
}

// hubFlags say where the hub is, how to trust it and how to ask.
type hubFlags struct {
	token     string
	tokenFile string
	server    string
	caFile    string
	hashes    []string
	proxyURL  string
	proxyCA   string
	internal  bool
	admin     cli.Context
}

// registrationFlags say how the cluster and its add-ons register.
type registrationFlags struct {
	cluster      string
	driver       driver.AuthType
	addOns       addOnAuth
	addOnSeconds int64
	certSeconds  int32
	annotations  map[string]string
	labels       map[string]string
	hubARN       string
	managedARN   string
	// publishIssuer is kept as it is unless its flag is given.
	publishIssuer bool
	// warning is what value found that is no mistake.
	warning string
}

// addOnAuth is how add-ons authenticate to the hub.
type addOnAuth string

const (
	addOnCSR   addOnAuth = "csr"
	addOnToken addOnAuth = "token"
)

const (
	flagPublishIssuer = "publish-issuer"
	flagHubARN        = "hub-cluster-arn"
	flagManagedARN    = "managed-cluster-arn"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	o := &options{env: env, gates: flags.NewGates(install.AgentFeatures())}
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Make a cluster ask to join a hub",
		Long: `Install the agent that registers this cluster with a hub. The hub's init and
get token print the command.

The hub is verified before the token is sent: by --ca-file, by --hub-ca-hash, or
by the system's root certificates. Running the command again repairs the agent
and keeps what no flag changes.`,
		Example: fmt.Sprintf(`  # Join with the token and the CA hash that the hub printed
  %[1]s join --cluster-name cluster1 --wait --hub-token-file token.txt \
      --hub-apiserver https://hub.example.com:6443 --hub-ca-hash sha256:...

  # Token, join and accept in one, with both kubeconfig contexts at hand
  %[1]s join --cluster-name cluster1 --hub-context hub --context cluster1

  # Bring a new token, CA or address of the hub to an agent that lost it
  %[1]s join --refresh --hub-token-file - --ca-file ca.pem \
      --hub-apiserver https://new.example.com:6443`, env.Name),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := o.complete(cmd)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), p)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.hub.addTo(cmd)
	o.registration.addTo(cmd)
	o.gates.AddTo(cmd)
	o.workload.AddTo(cmd)
	o.wait.AddTo(cmd, "wait until the hub has accepted the cluster")
	o.env.Kube.AddDryRunFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.refresh, "refresh", false, "give an installed agent a new token, CA or address of the hub")
	f.StringVar(&o.file, "output-file", "", "write the objects as YAML to this file as well")
	f.StringSliceVar(&o.skip, "skip-check", nil, "checks that only warn")
	f.BoolVar(&o.force, "force", false, "let every check only warn")
	_ = cmd.RegisterFlagCompletionFunc("skip-check", cobra.FixedCompletions(install.Checks(), cobra.ShellCompDirectiveNoFileComp))
	cli.AliasFlag(cmd, "spoke-context", "context")
	later := "hosted mode is not supported in this release"
	capi := "importing from Cluster API is not supported in this release"
	o.compat = flags.AddCompat(o.env, cmd, map[string]string{
		"bundle-version":                         "there is one image, and its version is this command's",
		"bundle-version-overrides":               "there is one image, and its version is this command's",
		"singleton":                              "the agent is one pod anyway",
		"enable-sync-labels":                     "labels are not copied yet",
		"force-internal-endpoint-lookup-managed": "it belongs to hosted mode",
	}, map[string]string{
		"klusterlet-values-file":     "there is no Helm chart; use the flags, or edit the output of --dry-run=client",
		"managed-cluster-kubeconfig": later,
		"capi-import":                capi, "capi-cluster-name": capi, "capi-kubeconfig": capi,
	})
	mode := "default"
	cli.NewEnum(&mode, nil, "default").AddTo(cmd, "mode", "m", "how the agent is deployed").Hidden = true
}

func (h *hubFlags) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&h.token, "hub-token", "", "join token of the hub; others on this machine can see it, prefer the two below")
	f.StringVar(&h.tokenFile, "hub-token-file", "", "file with the join token; - is standard input ($"+fleet.TokenVariable+" works too)")
	f.StringVar(&h.server, "hub-apiserver", "", "address of the hub's API server")
	f.StringVar(&h.caFile, "ca-file", "", "file with the hub's CA certificate")
	cli.AliasFlag(cmd, "hub-ca-file", "ca-file")
	f.StringSliceVar(&h.hashes, "hub-ca-hash", nil, "pinned hash of the hub's CA, as the hub's join command shows it")
	f.StringVar(&h.proxyURL, "proxy-url", "", "proxy between the cluster and the hub")
	f.StringVar(&h.proxyCA, "proxy-ca-file", "", "file with the proxy's CA certificate")
	f.BoolVar(&h.internal, "force-internal-endpoint-lookup", false, "let the agent use the address in the hub's cluster-info")
	f.StringVar(&h.admin.Name, "hub-context", "", "kubeconfig context of the hub: token, join and accept in one")
	f.StringVar(&h.admin.Kubeconfig, "hub-kubeconfig", "", "kubeconfig file of the hub, if it is another one")
	_ = cmd.MarkFlagFilename("ca-file")
	_ = cmd.MarkFlagFilename("proxy-ca-file")
	_ = cmd.MarkFlagFilename("hub-token-file")
	cmd.MarkFlagsMutuallyExclusive("hub-token", "hub-token-file", "hub-context")
	cmd.MarkFlagsMutuallyExclusive("hub-apiserver", "hub-kubeconfig")
}

func (r *registrationFlags) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.cluster, "cluster-name", "", "name of this cluster on the hub")
	r.driver = ""
	cli.NewEnum(&r.driver, map[string]driver.AuthType{"aws-irsa": driver.AWSIRSA}, driver.CSR, driver.AWSIRSA, driver.GRPC).
		AddTo(cmd, "registration-auth", "", "how the cluster registers (default csr)")
	cli.AliasFlag(cmd, "registration-drivers", "registration-auth")
	cli.NewEnum(&r.addOns, nil, addOnCSR, addOnToken).
		AddTo(cmd, "addon-kubeclient-registration-auth", "", "how add-ons register (default csr)")
	cli.AliasFlag(cmd, "addon-auth", "addon-kubeclient-registration-auth")
	f.Int64Var(&r.addOnSeconds, "addon-token-expiration-seconds", 0, "how long tokens of add-ons are good; 0 is a year")
	f.Int32Var(&r.certSeconds, "client-cert-expiration-seconds", 0, "how long the client certificate is good; 0 leaves it to the hub")
	f.StringToStringVar(&r.annotations, "klusterlet-annotation", nil, "annotations of the cluster on the hub, as key=value")
	cli.AliasFlag(cmd, "annotation", "klusterlet-annotation")
	f.StringToStringVar(&r.labels, "label", nil, "labels that the ManagedCluster is created with, as key=value")
	f.StringVar(&r.hubARN, flagHubARN, "", "ARN of the hub's EKS cluster, for awsirsa")
	cli.AliasFlag(cmd, "eks-hub-cluster-arn", flagHubARN)
	f.StringVar(&r.managedARN, flagManagedARN, "", "ARN of this EKS cluster, for awsirsa; by default that of the kubeconfig, if its context is of an EKS cluster")
	f.BoolVar(&r.publishIssuer, flagPublishIssuer, false, "show the hub this cluster's token issuer and its public keys, so that it can tell its workloads' tokens")
}
