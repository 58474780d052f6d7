package cli

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
)

// Kube is how a command reaches a cluster: kubectl's connection flags and the
// dry-run mode. The zero value is not usable; see NewKube.
type Kube struct {
	flags  *genericclioptions.ConfigFlags
	dryRun DryRun
	trail  *trail
}

// NewKube returns the settings of a tree before its flags are parsed.
func NewKube() *Kube {
	k := &Kube{dryRun: DryRunNone, trail: &trail{}}
	k.flags = k.connection()
	return k
}

// connection returns kubectl's connection flags, whose connections are guarded.
// The namespace is a flag of the commands that have one, and nothing is cached.
func (k *Kube) connection() *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(false).WithWrapConfigFn(k.Guard)
	flags.Namespace, flags.CacheDir = nil, nil
	return flags
}

// AddFlags registers kubectl's connection flags. The usage texts show only the
// two that are used most; kubectl documents the others.
func (k *Kube) AddFlags(flags *pflag.FlagSet) {
	k.flags.AddFlags(flags)
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
	flag.Usage = "If none, apply the changes; if client, print them; if server, send requests that the API server does not persist"
	cmd.PreRun = func(*cobra.Command, []string) {
		if !flag.Changed {
			k.dryRun = DryRunClient
		}
	}
}

func (k *Kube) addDryRunFlag(cmd *cobra.Command) *pflag.Flag {
	flag := NewEnum(&k.dryRun, map[string]DryRun{"true": DryRunClient, "false": DryRunNone},
		DryRunNone, DryRunClient, DryRunServer).AddTo(cmd, "dry-run", "",
		"If client, print what would be sent without sending it; if server, send requests that the API server does not persist")
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

// At returns the settings of a call whose flags choose another cluster; an empty
// Context is the current one of the kubeconfig. The other connection flags belong
// to the cluster that --context names and are not used for it.
func (k *Kube) At(other Context) *Kube {
	chosen := &Kube{dryRun: k.dryRun, trail: k.trail}
	chosen.flags = chosen.connection()
	chosen.flags.Timeout, chosen.flags.Context = k.flags.Timeout, &other.Name
	chosen.flags.KubeConfig = new(cmp.Or(other.Kubeconfig, *k.flags.KubeConfig))
	return chosen
}

// Of returns the settings for another cluster, or k where none is named.
func (k *Kube) Of(other Context) *Kube {
	if other == (Context{}) {
		return k
	}
	return k.At(other)
}

// chosen is the kubeconfig and the context that the flags name.
func (k *Kube) chosen() Context {
	return Context{Kubeconfig: *k.flags.KubeConfig, Name: *k.flags.Context}
}

// Loader returns the kubeconfig that the flags choose.
func (k *Kube) Loader() clientcmd.ClientConfig { return k.flags.ToRawKubeConfigLoader() }

// Config returns the connection to the cluster that the flags choose.
func (k *Kube) Config() (*rest.Config, error) {
	config, err := k.flags.ToRESTConfig()
	if err == nil && config.Host == clientcmd.ClusterDefaults.Server && k.unconfigured() {
		err = genericclioptions.ErrEmptyConfig
	}
	if err != nil {
		return nil, explainLoading(err, *k.flags.KubeConfig)
	}
	return config, nil
}

// unconfigured reports whether no kubeconfig and no flag names a server: kubectl
// tries a port of this machine then.
func (k *Kube) unconfigured() bool {
	raw, err := k.Loader().RawConfig()
	return err == nil && len(raw.Clusters) == 0 && *k.flags.APIServer == ""
}

// Guard puts the dry-run mode of this call, our user agent and no client-side
// rate limit into a connection. Every connection of a command goes through it.
func (k *Kube) Guard(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = "kubectl-ocm/" + buildinfo.Version
	// The API server's priority and fairness limits us better than we could.
	config.QPS = -1
	config.Wrap(k.trail.watch)
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
func (k *Kube) Client() (client.WithWatch, error) {
	c, _, err := k.Connect()
	return c, err
}

// Connect returns a client for the cluster that the flags choose, and its
// connection.
func (k *Kube) Connect() (client.WithWatch, *rest.Config, error) {
	config, err := k.Config()
	if err != nil {
		return nil, nil, err
	}
	c, err := NewClient(config)
	return c, config, err
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
func (k *Kube) Target() (contextName, server string) {
	raw, err := k.Loader().RawConfig()
	if err != nil {
		return "", ""
	}
	contextName = cmp.Or(*k.flags.Context, raw.CurrentContext)
	if c, ok := raw.Contexts[contextName]; ok {
		if cluster, ok := raw.Clusters[c.Cluster]; ok {
			server = cluster.Server
		}
	}
	return contextName, server
}

// ContextsOf are the names, quoted for a shell, of the contexts of the kubeconfig that lead
// to a server by the same URL.
func (k *Kube) ContextsOf(server string) []string {
	raw, err := k.Loader().RawConfig()
	if err != nil {
		return nil
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(raw.Contexts)) {
		cluster, ok := raw.Clusters[raw.Contexts[name].Cluster]
		if ok && strings.TrimSuffix(cluster.Server, "/") == strings.TrimSuffix(server, "/") {
			found = append(found, Quoted(name))
		}
	}
	return found
}

// ClusterEntry returns the name of the kubeconfig's cluster entry that the connection is
// of, empty if the kubeconfig does not say or a flag leads elsewhere.
func (k *Kube) ClusterEntry() string {
	config, err := k.Loader().RawConfig()
	if err != nil {
		return ""
	}
	connection, err := k.Loader().ClientConfig()
	if err != nil {
		return ""
	}
	name, _ := k.Target()
	chosen, ok := config.Contexts[name]
	if !ok {
		return ""
	}
	if entry, ok := config.Clusters[chosen.Cluster]; !ok || entry.Server != connection.Host {
		return ""
	}
	return chosen.Cluster
}
