package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/serviceaccount"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// flagAudience has no default: a token for the API server is a credential for all
// that its ServiceAccount may do, and has to be asked for.
const flagAudience = "audience"

// imagePullFlags are the flags of the image pull secret controller.
type imagePullFlags struct {
	common    common
	registry  pullRegistryFlags
	selection pullSelectionFlags
	token     pullTokenFlags
}

func newImagePull() *cobra.Command {
	var flags imagePullFlags
	cmd := &cobra.Command{
		Use:   "imagepull",
		Short: "Keep image pull secrets with bound ServiceAccount tokens",
		Long: `Keep an image pull secret for each selected ServiceAccount, with a token of that
ServiceAccount as the password for the registries. The token is bound to the
Secret, expires, and is renewed before it does.

A ServiceAccount is selected by the annotation
` + names.AnnotationPullSecret + `=true on it or on its
namespace, or by the selectors; the annotation with the value false opts out.`,
		Example: `  # Pull secrets for one registry, for ServiceAccounts that opt in
  kubectl ocm controller imagepull --registry registry.example.com --audience registry.example.com`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.common.addFlags(cmd.Flags())
	flags.registry.addFlags(cmd.Flags())
	flags.selection.addFlags(cmd)
	flags.token.addFlags(cmd)
	return cmd
}

// pullRegistryFlags say which registries the pull secrets are for.
type pullRegistryFlags struct {
	hosts     []string
	configMap string
}

func (f *pullRegistryFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.hosts, "registry", nil, "Registry host, as in the names of its images, or HOST=AUDIENCE; can be repeated")
	flags.StringVar(&f.configMap, "registry-configmap", "", "ConfigMap with more hosts under the key hosts, as NAMESPACE/NAME; it is watched")
}

// complete reports whether each registry has an audience of its own.
func (f *pullRegistryFlags) complete() bool {
	lacks := func(host string) bool { return !strings.Contains(host, "=") }
	return f.configMap == "" && !slices.ContainsFunc(f.hosts, lacks)
}

// source returns the ConfigMap, if one is named.
func (f *pullRegistryFlags) source() (types.NamespacedName, error) {
	if f.configMap == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, ok := strings.Cut(f.configMap, "/")
	if !ok || namespace == "" || name == "" {
		return types.NamespacedName{}, fmt.Errorf("--registry-configmap %q: write it as NAMESPACE/NAME", f.configMap)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// pullAttach is where pull secrets are listed.
type pullAttach string

const (
	attachImagePullSecrets pullAttach = "imagePullSecrets"
	attachNone             pullAttach = "none"
)

// pullSelectionFlags say which ServiceAccounts have a pull secret.
type pullSelectionFlags struct {
	named      []string
	onlyUsed   bool
	namespaces string
	accounts   string
	attach     pullAttach
}

func (f *pullSelectionFlags) addFlags(cmd *cobra.Command) {
	f.attach = attachImagePullSecrets
	cmd.Flags().StringSliceVar(&f.named, "namespaces", nil, "Work in these namespaces only, and select the ServiceAccounts in them")
	cmd.Flags().StringVar(&f.namespaces, "namespace-selector", "", "Label selector of namespaces whose ServiceAccounts have a pull secret")
	cmd.Flags().StringVar(&f.accounts, "service-account-selector", "", "Label selector of ServiceAccounts that have a pull secret; with --namespace-selector, both must match")
	cmd.Flags().BoolVar(&f.onlyUsed, "only-used", false, "Make pull secrets only for selected ServiceAccounts that a workload uses")
	cli.NewEnum(&f.attach, nil, attachImagePullSecrets, attachNone).AddTo(cmd, "attach", "", "List of the ServiceAccount that names the pull secret")
}

func (f *pullSelectionFlags) selection() (serviceaccount.Selection, error) {
	namespaces, errNamespaces := labels.Parse(f.namespaces)
	accounts, errAccounts := labels.Parse(f.accounts)
	if errNamespaces != nil {
		errNamespaces = fmt.Errorf("--namespace-selector: %w", errNamespaces)
	}
	if errAccounts != nil {
		errAccounts = fmt.Errorf("--service-account-selector: %w", errAccounts)
	}
	return serviceaccount.Selection{Namespaces: namespaces, ServiceAccounts: accounts}, errors.Join(errNamespaces, errAccounts)
}

// pullTokenFlags say what the tokens are for.
type pullTokenFlags struct {
	audience string
	spec     token.Spec
	qps      float32
}

func (f *pullTokenFlags) addFlags(cmd *cobra.Command) {
	formats := imagepull.Formats()
	f.spec.Format = formats[0]
	cli.NewEnum(&f.spec.Format, nil, formats...).AddTo(cmd, "format", "", "Format of the Secrets; a change between the two makes the Secrets anew")
	flags := cmd.Flags()
	flags.StringVar(&f.audience, flagAudience, "", `Audience of the tokens, which the registries must expect; "" makes tokens for the API server, with which a reader of the Secret can act as the ServiceAccount`)
	flags.DurationVar(&f.spec.TTL, "token-ttl", 12*time.Hour, "Lifetime of the tokens; the API server may shorten it")
	flags.StringVar(&f.spec.Username, "username", "serviceaccount", "User name that is sent with the token")
	flags.Float32Var(&f.qps, "refresh-qps", 20, "Maximum number of tokens that are renewed per second; first tokens do not wait")
}

// config turns flags into values, without the network.
func (f *imagePullFlags) config(flags *pflag.FlagSet) (imagepull.Config, error) {
	configMap, errSource := f.registry.source()
	selection, errSelection := f.selection.selection()
	if err := errors.Join(errSource, errSelection); err != nil {
		return imagepull.Config{}, cli.Usagef("%v", err)
	}
	if len(f.registry.hosts) == 0 && f.registry.configMap == "" {
		return imagepull.Config{}, cli.Usagef("no registry is named: use --registry HOST or --registry-configmap NAMESPACE/NAME")
	}
	if !flags.Changed(flagAudience) && !f.registry.complete() {
		return imagepull.Config{}, cli.Usagef(`--audience is missing: name the audience that the registries expect, or write --audience "" for tokens of the API server`)
	}
	config := imagepull.Config{
		Hosts: f.registry.hosts, ConfigMap: configMap, Audience: f.token.audience,
		Selection: selection, Namespaces: f.selection.named, OnlyUsed: f.selection.onlyUsed, Attach: f.selection.attach == attachImagePullSecrets,
		Token: f.token.spec, RefreshQPS: f.token.qps,
		Clock: clock.RealClock{}, Metrics: metrics.Registry,
	}
	if err := config.Validate(); err != nil {
		return imagepull.Config{}, cli.Usagef("%v", err)
	}
	return config, nil
}

func (f *imagePullFlags) run(cmd *cobra.Command) error {
	config, err := f.config(cmd.Flags())
	if err != nil {
		return err
	}
	thrifty()
	connection, err := f.common.config()
	if err != nil {
		return err
	}
	connection.UserAgent = "kubectl-ocm/imagepull"
	mgr, err := f.common.manager(connection, "imagepull", imagepull.CacheOptions(config))
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := imagepull.Setup(ctx, mgr, config); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting to keep image pull secrets", "hosts", config.Hosts, "audience", config.Audience)
	return mgr.Start(ctx)
}
