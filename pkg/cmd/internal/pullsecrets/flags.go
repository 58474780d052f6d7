package pullsecrets

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/serviceaccount"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
)

// flagAudience has no default: a token for the API server is a credential for all
// that its ServiceAccount may do, and has to be asked for.
const flagAudience = "audience"

// Flags are those that say how pull secrets are kept.
type Flags struct {
	preset    imagepull.Preset
	registry  registryFlags
	selection selectionFlags
	token     tokenFlags

	// set is where they are registered, and own are they.
	set *pflag.FlagSet
	own []*pflag.Flag
}

// AddTo registers the flags.
func (f *Flags) AddTo(cmd *cobra.Command) {
	f.set = cmd.Flags()
	others := map[*pflag.Flag]bool{}
	f.set.VisitAll(func(flag *pflag.Flag) { others[flag] = true })
	cli.NewEnum(&f.preset, nil, imagepull.OpenShift).AddTo(cmd, "preset", "", "Names and defaults of another product: its pull secrets are taken over")
	f.registry.addFlags(f.set)
	f.selection.addFlags(cmd)
	f.token.addFlags(cmd)
	f.set.VisitAll(func(flag *pflag.Flag) {
		if !others[flag] {
			f.own = append(f.own, flag)
		}
	})
}

// attachment is where pull secrets are listed.
type attachment string

const (
	attachImagePullSecrets attachment = "imagePullSecrets"
	attachNone             attachment = "none"
)

// selectionFlags say which ServiceAccounts have a pull secret.
type selectionFlags struct {
	named      []string
	onlyUsed   bool
	namespaces string
	accounts   string
	attach     attachment
}

func (f *selectionFlags) addFlags(cmd *cobra.Command) {
	f.attach = attachImagePullSecrets
	cmd.Flags().StringSliceVar(&f.named, "namespaces", nil, "Work in these namespaces only, and select the ServiceAccounts in them")
	cmd.Flags().StringVar(&f.namespaces, "namespace-selector", "", "Label selector of namespaces whose ServiceAccounts have a pull secret")
	cmd.Flags().StringVar(&f.accounts, "service-account-selector", "", "Label selector of ServiceAccounts that have a pull secret; with --namespace-selector, both must match")
	cmd.Flags().BoolVar(&f.onlyUsed, "only-used", false, "Make pull secrets only for selected ServiceAccounts that a workload uses")
	cli.NewEnum(&f.attach, nil, attachImagePullSecrets, attachNone).AddTo(cmd, "attach", "", "List of the ServiceAccount that names the pull secret")
}

func (f *selectionFlags) selection() (serviceaccount.Selection, error) {
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

// tokenFlags say what the tokens are for.
type tokenFlags struct {
	audience string
	spec     token.Spec
	qps      float32
}

func (f *tokenFlags) addFlags(cmd *cobra.Command) {
	formats := imagepull.Formats()
	f.spec.Format = formats[0]
	cli.NewEnum(&f.spec.Format, nil, formats...).AddTo(cmd, "format", "", "Format of the Secrets; a change of the format recreates the Secrets")
	flags := cmd.Flags()
	flags.StringVar(&f.audience, flagAudience, "", `Audience of the tokens, which the registries must expect; "" makes tokens for the API server, with which a reader of the Secret can act as the ServiceAccount`)
	flags.DurationVar(&f.spec.TTL, "token-ttl", 12*time.Hour, "Lifetime of the tokens; the API server may shorten it")
	flags.StringVar(&f.spec.Username, "username", "serviceaccount", "User name that is sent with the token")
	flags.Float32Var(&f.qps, "refresh-qps", 20, "Maximum number of tokens that are renewed per second; first tokens do not wait")
}

// Config turns the flags into values, without the network. The clock and where
// metrics are registered are the caller's.
func (f *Flags) Config() (imagepull.Config, error) {
	if f.preset == imagepull.OpenShift {
		f.openShift()
	}
	lookup, errLookup := f.registry.lookup()
	selection, errSelection := f.selection.selection()
	if err := errors.Join(errLookup, errSelection); err != nil {
		return imagepull.Config{}, cli.Usagef("%v", err)
	}
	if len(f.registry.hosts) == 0 && lookup.Empty() {
		return imagepull.Config{}, cli.Usagef("no registry is named: use --registry HOST, --registry-configmap, --registry-service or --registry-route")
	}
	if !f.set.Changed(flagAudience) && f.preset == imagepull.Generic && !f.registry.complete() {
		return imagepull.Config{}, cli.Usagef(`--audience is missing: name the audience that the registries expect, or write --audience "" for tokens of the API server`)
	}
	selection.All = f.preset == imagepull.OpenShift
	config := imagepull.Config{
		Preset: f.preset, Hosts: f.registry.hosts, Lookup: lookup, Audience: f.token.audience,
		Selection: selection, Namespaces: f.selection.named, OnlyUsed: f.selection.onlyUsed, Attach: f.selection.attach == attachImagePullSecrets,
		Token: f.token.spec, RefreshQPS: f.token.qps,
	}
	if err := config.Validate(); err != nil {
		return imagepull.Config{}, cli.Usagef("%v", err)
	}
	return config, nil
}

// Args are the arguments of a controller with these flags: those that were set.
func (f *Flags) Args() []string {
	var args []string
	for _, flag := range f.own {
		if flag.Changed {
			args = append(args, arguments(flag)...)
		}
	}
	return args
}

// arguments set a flag to its value: one for each item of a list.
func arguments(flag *pflag.Flag) []string {
	list, ok := flag.Value.(pflag.SliceValue)
	if !ok {
		return []string{"--" + flag.Name + "=" + flag.Value.String()}
	}
	var args []string
	for _, item := range list.GetSlice() {
		args = append(args, "--"+flag.Name+"="+item)
	}
	return args
}

// Keep sets the flags that were not set to what a controller's arguments say.
// Arguments that are not of these flags are left out.
func (f *Flags) Keep(args []string) error {
	unset := map[string]bool{}
	for _, flag := range f.own {
		unset[flag.Name] = !flag.Changed
	}
	for _, arg := range args {
		name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !ok || !unset[name] {
			continue
		}
		if err := f.set.Set(name, value); err != nil {
			return fmt.Errorf("the installed controller's argument %s: %w", arg, err)
		}
	}
	return nil
}

// Preset is whose names pull secrets have.
func (f *Flags) Preset() imagepull.Preset { return f.preset }

// openShift sets what was not set to what OpenShift's controllers do: tokens of the
// API server, for the two Services that the integrated registry can have.
func (f *Flags) openShift() {
	defaults := map[string]func(){
		"registry-service": func() {
			f.registry.services = []string{"default/docker-registry", "openshift-image-registry/image-registry"}
		},
		"token-ttl": func() { f.token.spec.TTL = time.Hour },
		"username":  func() { f.token.spec.Username = "<token>" },
		"format":    func() { f.token.spec.Format = imagepull.DockerCfg },
	}
	for name, set := range defaults {
		if !f.set.Changed(name) {
			set()
		}
	}
}
