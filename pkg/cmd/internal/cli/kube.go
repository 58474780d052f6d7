package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
)

// Kube is how a command reaches a cluster: kubectl's connection flags and the
// dry-run mode. The zero value is not usable; see NewKube.
type Kube struct {
	path      string
	overrides clientcmd.ConfigOverrides
	dryRun    DryRun
}

// NewKube returns the settings of a tree before its flags are parsed.
func NewKube() *Kube { return &Kube{dryRun: DryRunNone} }

// AddFlags registers kubectl's connection flags. All but the two that everybody
// uses are left out of the usage texts; kubectl documents them.
func (k *Kube) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&k.path, "kubeconfig", "", "path to the kubeconfig file")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{}
	names.ClusterOverrideFlags.ProxyURL = clientcmd.FlagInfo{}
	names.CurrentContext.Description = "kubeconfig context to use"
	clientcmd.BindOverrideFlags(&k.overrides, flags, names)
	shown := []string{"kubeconfig", "context"}
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shown, f.Name) })
}

// AddDryRunFlag registers --dry-run on a command that writes. The bare flag is
// client, as old scripts for clusteradm expect.
func (k *Kube) AddDryRunFlag(cmd *cobra.Command) { k.addDryRunFlag(cmd) }

// AddPreviewFlag registers --dry-run on a command that writes only with
// --dry-run=none.
func (k *Kube) AddPreviewFlag(cmd *cobra.Command) {
	flag := k.addDryRunFlag(cmd)
	flag.DefValue = string(DryRunClient)
	flag.Usage = "none: do it; server: have it checked and not kept"
	cmd.PreRun = func(*cobra.Command, []string) {
		if !flag.Changed {
			k.dryRun = DryRunClient
		}
	}
}

func (k *Kube) addDryRunFlag(cmd *cobra.Command) *pflag.Flag {
	flag := NewEnum(&k.dryRun, map[string]DryRun{"true": DryRunClient, "false": DryRunNone},
		DryRunNone, DryRunClient, DryRunServer).AddTo(cmd, "dry-run", "",
		"client: print what would be sent and send nothing; server: have it checked and not kept")
	flag.NoOptDefVal = string(DryRunClient)
	return flag
}

// DryRun is the dry-run mode of this call.
func (k *Kube) DryRun() DryRun { return k.dryRun }

// DryRunSuffix marks a line about something that a dry run did not really do.
func (k *Kube) DryRunSuffix() string {
	switch k.dryRun {
	case DryRunClient:
		return " (dry run)"
	case DryRunServer:
		return " (server dry run)"
	default:
		return ""
	}
}

// Context chooses another cluster than the flags do. An empty field means what
// the flags say.
type Context struct {
	Kubeconfig string
	Name       string
}

// Loader returns the kubeconfig that the flags choose.
func (k *Kube) Loader() clientcmd.ClientConfig { return k.LoaderFor(Context{}) }

// LoaderFor returns the kubeconfig of another cluster. The other connection
// flags belong to the cluster that --context names and are not used for it.
func (k *Kube) LoaderFor(other Context) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.path
	overrides := k.overrides
	if other != (Context{}) {
		overrides = clientcmd.ConfigOverrides{CurrentContext: other.Name, Timeout: k.overrides.Timeout}
		if other.Kubeconfig != "" {
			rules.ExplicitPath = other.Kubeconfig
		}
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides)
}

// At returns the settings of a call whose flags choose another cluster: an empty
// Context is the current one of the kubeconfig.
func (k *Kube) At(other Context) *Kube {
	chosen := *k
	chosen.overrides = clientcmd.ConfigOverrides{CurrentContext: other.Name, Timeout: k.overrides.Timeout}
	if other.Kubeconfig != "" {
		chosen.path = other.Kubeconfig
	}
	return &chosen
}

// Config returns the connection to the cluster that the flags choose.
func (k *Kube) Config() (*rest.Config, error) { return k.ConfigFor(Context{}) }

// ConfigFor returns the connection to another cluster.
func (k *Kube) ConfigFor(other Context) (*rest.Config, error) {
	config, err := k.LoaderFor(other).ClientConfig()
	if err != nil {
		return nil, explainLoading(err, cmp.Or(other.Kubeconfig, k.path))
	}
	return k.Guard(config), nil
}

// Guard puts the dry-run mode of this call, our user agent and no client-side
// rate limit into a connection. Every connection of a command goes through it.
func (k *Kube) Guard(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = "kubectl-ocm/" + buildinfo.Version
	// The API server's priority and fairness limits us better than we could.
	config.QPS = -1
	if k.dryRun != DryRunNone {
		mode := k.dryRun
		// The transport has to read the bodies of deletions.
		config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return dryRunTransport{mode: mode, next: next}
		})
	}
	return config
}

// Client returns a client for the cluster that the flags choose.
func (k *Kube) Client() (client.WithWatch, error) { return k.ClientFor(Context{}) }

// ClientFor returns a client for another cluster.
func (k *Kube) ClientFor(other Context) (client.WithWatch, error) {
	config, err := k.ConfigFor(other)
	if err != nil {
		return nil, err
	}
	return NewClient(config)
}

// NewClient returns a client that speaks our scheme.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	return c, nil
}

// Target names the cluster that the flags choose, for messages.
func (k *Kube) Target() (contextName, server string) { return k.TargetOf(Context{}) }

// TargetOf names another cluster, for messages.
func (k *Kube) TargetOf(other Context) (contextName, server string) {
	raw, err := k.LoaderFor(other).RawConfig()
	if err != nil {
		return "", ""
	}
	chosen := other.Name
	if other == (Context{}) {
		chosen = k.overrides.CurrentContext
	}
	contextName = cmp.Or(chosen, raw.CurrentContext)
	return contextName, serverOf(raw, contextName)
}

func serverOf(config clientcmdapi.Config, contextName string) string {
	if c, ok := config.Contexts[contextName]; ok {
		if cluster, ok := config.Clusters[c.Cluster]; ok {
			return cluster.Server
		}
	}
	return ""
}
