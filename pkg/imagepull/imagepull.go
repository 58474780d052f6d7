package imagepull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/wake"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/legacy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/registry"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/serviceaccount"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/signer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/usage"
)

// MinTTL is the shortest life that an API server gives a token.
const MinTTL = 10 * time.Minute

// Format is how pull secrets store their tokens.
type Format = content.Format

// DockerCfg is the format of OpenShift's pull secrets.
const DockerCfg = content.DockerCfg

// Formats are the formats, the usual one first.
func Formats() []Format {
	return []Format{content.DockerConfigJSON, content.DockerCfg, content.Both}
}

// Preset is whose names pull secrets have.
type Preset string

// The presets.
const (
	// Generic is the names of this product.
	Generic Preset = ""
	// OpenShift is the names and habits of OpenShift's controllers for the integrated
	// registry: what they made is taken over, and what they made from tokens that
	// never expire is marked.
	OpenShift Preset = "openshift"
)

// Config is how pull secrets are kept.
type Config struct {
	// Preset is whose names they have.
	Preset Preset
	// Hosts are the registries, as HOST or as HOST=AUDIENCE, in addition to those of
	// Lookup.
	Hosts  []string
	Lookup registry.Lookup
	// Audience is the audience of registries without one of their own; empty means the
	// API server's.
	Audience string
	// Selection says which ServiceAccounts have a pull secret.
	Selection serviceaccount.Selection
	// Namespaces limit the controllers to these namespaces, and select all
	// ServiceAccounts in them where Selection has no selector. Without any, they
	// work in the whole cluster.
	Namespaces []string
	// OnlyUsed makes pull secrets only for ServiceAccounts that a workload uses.
	OnlyUsed bool
	// Attach lists the pull secrets in the ServiceAccounts' imagePullSecrets.
	Attach bool
	// Token is how tokens are requested and stored.
	Token token.Spec
	// RefreshQPS is how many tokens are replaced a second, at the most.
	RefreshQPS float32
	// SigningKeys is where the cluster's keys are read; nil is its API server.
	SigningKeys signer.Source
	// Clock is the time.
	Clock clock.WithTicker
	// Metrics is where the metrics are registered.
	Metrics prometheus.Registerer
}

// Validate checks a configuration, without the network.
func (c Config) Validate() error {
	_, err := registry.NewHosts(c.Hosts, c.Audience)
	errs := []error{err}
	if len(c.Hosts) == 0 && c.Lookup.Empty() {
		errs = append(errs, errors.New("no registry host is configured"))
	}
	errs = append(errs, c.validateTokens(), c.validateNamespaces())
	if c.RefreshQPS <= 0 {
		errs = append(errs, errors.New("the refreshes per second must be positive"))
	}
	return errors.Join(errs...)
}

func (c Config) validateTokens() error {
	var errs []error
	if c.Token.TTL < MinTTL {
		errs = append(errs, fmt.Errorf("invalid token lifetime %s: an API server issues no token for less than %s", c.Token.TTL, MinTTL))
	}
	if strings.Contains(c.Token.Username, ":") {
		errs = append(errs, fmt.Errorf("invalid user name %q: must not contain a colon", c.Token.Username))
	}
	if !slices.Contains(Formats(), c.Token.Format) {
		errs = append(errs, fmt.Errorf("invalid format %q: must be one of %q", c.Token.Format, Formats()))
	}
	if c.Preset == OpenShift && c.Token.Format != content.DockerCfg {
		errs = append(errs, fmt.Errorf("invalid format %q: with the preset %s it must be %s", c.Token.Format, OpenShift, content.DockerCfg))
	}
	return errors.Join(errs...)
}

func (c Config) validateNamespaces() error {
	var errs []error
	for _, namespace := range c.Namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("invalid namespace %q: %s", namespace, problems[0]))
		}
	}
	if len(c.Namespaces) > 0 && c.Selection.Namespaces != nil && !c.Selection.Namespaces.Empty() {
		errs = append(errs, errors.New("namespaces are both listed and selected by labels; use one of them"))
	}
	return errors.Join(errs...)
}

// selection returns the selection of ServiceAccounts: naming a namespace selects all in
// it.
func (c Config) selection() serviceaccount.Selection {
	selection := c.Selection
	selection.All = selection.All || len(c.Namespaces) > 0
	return selection
}

// Selects reports whether a ServiceAccount is to have a pull secret. Where
// namespaces are named, what they say themselves is not read.
func (c Config) Selects(account, namespace metav1.Object) bool {
	if len(c.Namespaces) == 0 {
		return c.selection().Selects(account, namespace)
	}
	return slices.Contains(c.Namespaces, account.GetNamespace()) && c.selection().Selects(account, &metav1.ObjectMeta{})
}

// form returns the form of pull secrets.
func (c Config) form() owner.Form {
	if c.Preset == OpenShift {
		return owner.OpenShift()
	}
	return owner.Generic()
}

// Setup adds the controllers to a manager whose cache has CacheOptions.
func Setup(ctx context.Context, mgr ctrl.Manager, config Config) error {
	if err := config.Validate(); err != nil {
		return err
	}
	accounts, tokens := wake.New(), wake.New()
	hosts, err := registry.NewHosts(config.Hosts, config.Audience, accounts.Send, tokens.Send)
	if err != nil {
		return err
	}
	registry.RegisterMetrics(config.Metrics, hosts)
	if len(config.Hosts) == 0 {
		klog.FromContext(ctx).Info("Waiting for a registry host; no pull secret is written without one")
	}
	s := setup{Config: config, mgr: mgr, hosts: hosts, keys: signer.NewKeys()}
	return errors.Join(s.Lookup.SetupWithManager(mgr, hosts, config.Clock), s.signer(tokens), s.serviceAccounts(ctx, accounts), s.tokens(ctx, tokens), s.legacy())
}

// setup is the common configuration of the controllers.
type setup struct {
	Config

	mgr   ctrl.Manager
	hosts *registry.Hosts
	keys  *signer.Keys
}

func (s setup) signer(changed *wake.Signal) error {
	source := s.SigningKeys
	if source == nil {
		var err error
		if source, err = signer.KeySet(s.mgr.GetConfig()); err != nil {
			return err
		}
	}
	if s.Preset == OpenShift {
		source = signer.OpenShift(s.mgr.GetAPIReader(), source)
	}
	return s.mgr.Add(&signer.Reader{Keys: s.keys, Source: source, Changed: changed.Send, Clock: s.Clock, Metrics: signer.NewMetrics(s.Metrics)})
}

func (s setup) serviceAccounts(ctx context.Context, changed *wake.Signal) error {
	r := &serviceaccount.Reconciler{
		Client: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), Clock: s.Clock,
		Selection: s.selection(), Namespaced: len(s.Namespaces) > 0, Hosts: s.hosts, Form: s.form(), Format: s.Token.Format, Attach: s.Attach,
		Events: s.mgr.GetEventRecorder("pullsecret.serviceaccount"), Metrics: serviceaccount.NewMetrics(s.Metrics),
	}
	if s.OnlyUsed {
		index, err := usage.NewIndex(ctx, s.mgr)
		if err != nil {
			return err
		}
		r.Usage = index
	}
	return r.SetupWithManager(ctx, s.mgr, changed)
}

func (s setup) tokens(ctx context.Context, changed *wake.Signal) error {
	r := &token.Reconciler{
		Client: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), Clock: s.Clock,
		Form: s.form(), Spec: s.Token, Hosts: s.hosts, Keys: s.keys,
		Limit:  flowcontrol.NewTokenBucketRateLimiter(s.RefreshQPS, 1),
		Events: s.mgr.GetEventRecorder("pullsecret.token"), Metrics: token.NewMetrics(s.Metrics),
	}
	return r.SetupWithManager(ctx, s.mgr, changed)
}

// legacy marks what OpenShift's controllers made from tokens that never expire.
func (s setup) legacy() error {
	if s.Preset != OpenShift {
		return nil
	}
	cached, err := legacy.NewCache(s.mgr, s.Namespaces...)
	if err != nil {
		return err
	}
	tokens := &legacy.Tokens{Client: s.mgr.GetClient(), Cache: cached}
	pullSecrets := &legacy.PullSecrets{Client: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), Cache: cached}
	return errors.Join(tokens.SetupWithManager(s.mgr), pullSecrets.SetupWithManager(s.mgr))
}
