package join

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/join"
)

type options struct {
	env          cli.Env
	wait         cli.Wait
	workload     flags.Workload
	gates        *flags.Gates
	hub          hubFlags
	registration registrationFlags
	work         workFlags
	preflight    flags.Preflight
	rendering    fleet.Rendering
	refresh      bool
	rotate       bool
	changeHub    bool
	takeOver     fleet.TakeOverFlags
	out          *cli.Output
	changes      *cli.Changes
}

// hubFlags are the address of the hub, how to verify it and the bootstrap token.
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
	drivers      driverFlags
	addOns       addOnAuth
	addOnSeconds int64
	certSeconds  int32
	annotations  map[string]string
	labels       map[string]string
	// publishIssuer stays as it is unless its flag is given.
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

// Flags that change an installed agent only if they are given.
const (
	flagPublishIssuer = "publish-issuer"
	flagCertSeconds   = "client-cert-expiration-seconds"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	o := &options{env: env, out: cli.NewOutput(cli.Text, cli.Name), gates: flags.NewGates(agent.Gates())}
	o.changes = cli.ChangesFor(env, o.out)
	o.registration.drivers = driverFlags{known: env.Drivers, flags: flags.JoinDrivers(env.Drivers)}
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Register a cluster with a hub",
		Long: `Install the agent that registers this cluster with a hub, and the work agent
that applies the hub's ManifestWorks. On the hub, init and get token print the
command and its bootstrap token.

By default the hub may deploy everything to this cluster, as in OCM: the work
agent has the ClusterRole admin and may write any RBAC object.
--work-permissions limits that to a ClusterRole, and --no-work leaves the work
agent out.

The command verifies the hub before it sends the token: with --ca-file, with
--hub-ca-hash, or with the root certificates of this system. It is idempotent:
a second run repairs the agent and keeps settings that no flag changes. A
cluster that has joined leaves its hub for another one only with --change-hub.

--rotate is for a credential that leaked. The agent gives up its certificate and
registers again under another name, which the hub has to accept; until then the
cluster has no connection. After that, the name in the certificate that leaked
has no permissions on the hub. The certificate is in the group of the cluster
until it expires, with what you granted to that group. Credentials of add-ons
stay; see addon-auth rotate.

An agent of OCM is left alone unless --take-over is given. That replaces it in
place, with its name, its hub and its credential, so that it needs no token.`,
		Example: fmt.Sprintf(`  # Join with the token and the CA hash that the hub printed
  %[1]s join --cluster-name cluster1 --wait --hub-token-file token.txt \
      --hub-apiserver https://hub.example.com:6443 --hub-ca-hash sha256:...

  # Create the token, join and accept with one command, given both contexts
  %[1]s join --cluster-name cluster1 --hub-context hub --context cluster1

  # Show how the agent of OCM would be replaced, then do it
  %[1]s join --take-over --dry-run
  %[1]s join --take-over

  # Give an agent a new token, CA or address of its hub
  %[1]s join --refresh --hub-token-file - --ca-file ca.pem \
      --hub-apiserver https://new.example.com:6443

  # Replace a credential that leaked, and accept the new one
  %[1]s join --rotate --hub-context hub --context cluster1`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := o.complete(cmd)
			if err != nil {
				return err
			}
			return o.act(cmd.Context(), p)
		},
	}
	o.addFlags(cmd)
	return cmd
}

// act takes the agent of OCM over, renders a new one, or installs one.
func (o *options) act(ctx context.Context, p join.Plan) error {
	switch {
	case p.Agent.TakeOver != nil:
		return o.replace(ctx, p.Agent)
	case o.env.Kube.DryRun() == cli.DryRunClient:
		return o.render(ctx, p)
	}
	return o.changes.End(o.run(ctx, p))
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.hub.addTo(cmd)
	o.registration.addTo(cmd)
	o.work.addTo(cmd)
	o.gates.AddTo(cmd)
	o.workload.AddTo(cmd)
	o.workload.AddOperatorTo(cmd)
	o.wait.AddTo(cmd, "Wait until the hub has accepted the cluster")
	o.env.Kube.AddDryRunFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.refresh, "refresh", false, "Give an installed agent a new token, CA or address of the hub")
	f.BoolVar(&o.rotate, "rotate", false, "Register an installed agent again, under another agent name and with another key")
	f.BoolVar(&o.changeHub, "change-hub", false, "Let a cluster that has joined a hub leave it for another one")
	o.rendering.AddTo(cmd)
	o.preflight.AddForceTo(cmd)
	o.takeOver.AddTo(cmd, "the agent")
	o.out.AddTo(cmd)
	cli.AliasFlag(cmd, "spoke-context", "context")
	capi := "importing from Cluster API is not supported in this release"
	flags.AddCompat(cmd, map[string]string{
		"bundle-version":                         "there is one image, and its version is this command's",
		"bundle-version-overrides":               "there is one image, and its version is this command's",
		"singleton":                              "registration and works have one pod each; --no-work leaves one out",
		"force-internal-endpoint-lookup-managed": "it belongs to hosted mode",
	}, map[string]string{
		"klusterlet-values-file":     "there is no Helm chart; use the flags, or edit the output of --dry-run=client",
		"managed-cluster-kubeconfig": flags.NoHosted,
		"grpc-server":                flags.NoGRPC, "grpc-ca-file": flags.NoGRPC,
		"capi-import": capi, "capi-cluster-name": capi, "capi-kubeconfig": capi,
	})
	mode := "default"
	cli.NewEnum(&mode, nil, "default").Without("hosted", flags.NoHosted).AddTo(cmd, "mode", "m", "Deployment mode of the agent").Hidden = true
}

func (h *hubFlags) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&h.token, "hub-token", "", "Bootstrap token of the hub; other users of this machine can read it, prefer --hub-token-file")
	f.StringVar(&h.tokenFile, "hub-token-file", "", "File with the bootstrap token; - is standard input (or set $"+fleet.TokenVariable+")")
	f.StringVar(&h.server, "hub-apiserver", "", "Address of the hub's API server")
	f.StringVar(&h.caFile, "ca-file", "", "File with the hub's CA certificate")
	cli.AliasFlag(cmd, "hub-ca-file", "ca-file")
	f.StringSliceVar(&h.hashes, "hub-ca-hash", nil, "Hash of the hub's CA, as the join command of the hub prints it")
	f.StringVar(&h.proxyURL, "proxy-url", "", "Proxy between the cluster and the hub")
	f.StringVar(&h.proxyCA, "proxy-ca-file", "", "File with the proxy's CA certificate")
	f.BoolVar(&h.internal, "force-internal-endpoint-lookup", false, "Make the agent use the address in the hub's cluster-info")
	f.StringVar(&h.admin.Name, "hub-context", "", "Kubeconfig context of the hub; the command then also creates the token and accepts the cluster")
	f.StringVar(&h.admin.Kubeconfig, "hub-kubeconfig", "", "Kubeconfig file of the hub, if it is another one")
	_ = cmd.MarkFlagFilename("ca-file")
	_ = cmd.MarkFlagFilename("proxy-ca-file")
	_ = cmd.MarkFlagFilename("hub-token-file")
	cmd.MarkFlagsMutuallyExclusive("hub-token", "hub-token-file", "hub-context")
	cmd.MarkFlagsMutuallyExclusive("hub-apiserver", "hub-kubeconfig")
}

func (r *registrationFlags) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.cluster, "cluster-name", "", "Name of the managed cluster")
	flags.DriverEnum(&r.drivers.kind, r.drivers.known).AddTo(cmd, flags.DriverFlag, "", "Registration driver of the cluster (default csr)")
	cli.AliasFlag(cmd, "registration-drivers", flags.DriverFlag)
	r.drivers.flags.AddTo(cmd)
	cli.NewEnum(&r.addOns, nil, addOnCSR, addOnToken).
		AddTo(cmd, "addon-kubeclient-registration-auth", "", "Registration driver of add-ons (default csr)")
	cli.AliasFlag(cmd, "addon-auth", "addon-kubeclient-registration-auth")
	f.Int64Var(&r.addOnSeconds, "addon-token-expiration-seconds", 0, "Lifetime of add-on tokens, as a duration or in seconds; 0 means one year")
	f.Int32Var(&r.certSeconds, flagCertSeconds, 0, "Lifetime of the client certificate, as a duration or in seconds; 0 leaves it to the hub (default 90 days for a new cluster)")
	f.StringToStringVar(&r.annotations, "klusterlet-annotation", nil, "Annotations of the ManagedCluster, as key=value")
	cli.AliasFlag(cmd, "annotation", "klusterlet-annotation")
	f.StringToStringVar(&r.labels, "label", nil, "Labels of the new ManagedCluster, as key=value")
	f.BoolVar(&r.publishIssuer, flagPublishIssuer, false, "Publish this cluster's token issuer and its public keys on the hub, so that the hub can verify tokens of its workloads")
}
