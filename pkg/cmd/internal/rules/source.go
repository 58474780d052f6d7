package rules

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// Flags choose where the rules are: on the hub, or in the file of a token
// authorizer that runs without one.
type Flags struct {
	File string
	// Hub is where the hub is if the connection flags name another cluster.
	Hub cli.Context
}

// Command is a command line, for messages, that reads the rules from the same
// place.
func (f *Flags) Command(env cli.Env, args ...string) string {
	if f.File != "" {
		args = append(args, "--clusters-config", cli.Quoted(f.File))
	}
	return env.CommandAt(f.Hub, args...)
}

// AddTo registers the flags of a command that reads.
func (f *Flags) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.File, "clusters-config", "", "configuration file of a token authorizer, instead of the rules on the hub")
}

// Self is the ServiceAccount of the token authorizer on a hub.
func Self() policy.Account {
	return policy.Account{Namespace: names.HubNamespace, Name: names.TokenAuthorizer}
}

// Source is where the rules are.
type Source struct {
	// ForceConflicts takes fields over from other field managers.
	ForceConflicts bool

	env   cli.Env
	flags Flags
	hub   client.WithWatch // nil for a file
}

// Connect returns the source that the flags choose. Without a file it does not check that the
// cluster of the connection flags is a hub.
func (f *Flags) Connect(env cli.Env) (*Source, error) {
	s := &Source{env: env, flags: *f}
	if f.File != "" {
		return s, nil
	}
	var err error
	s.hub, err = env.Kube.Of(f.Hub).Client()
	return s, err
}

// Open returns the source that the flags choose. Without a file, the cluster of
// the connection flags must be a hub.
func (f *Flags) Open(ctx context.Context, env cli.Env) (*Source, error) {
	s, err := f.Connect(env)
	if err != nil || s.hub == nil {
		return s, err
	}
	return s, fleet.RequireHub(ctx, env, s.hub)
}

// String names the source.
func (s *Source) String() string { return cmp.Or(s.flags.File, "the hub") }

// Command is a command line, for messages, that reads the rules from the source.
func (s *Source) Command(args ...string) string { return s.flags.Command(s.env, args...) }

// Hub is the client of the hub, nil for a file.
func (s *Source) Hub() client.WithWatch { return s.hub }

// Options are those with which a token authorizer reads the rules.
func (s *Source) Options() config.Options {
	if s.hub != nil {
		return config.Options{Self: Self()}
	}
	return config.Options{}
}

// Config returns the configuration that a token authorizer with these rules has.
func (s *Source) Config(ctx context.Context, opts config.Options) (*config.Config, error) {
	if s.hub == nil {
		c, err := config.Load(s.flags.File, opts)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, cli.NotFoundf("check the path of --clusters-config", "there is no file %s", s.flags.File)
		}
		return c, err
	}
	objects, err := Objects(ctx, s.env, s.hub)
	if err != nil {
		return nil, err
	}
	return config.FromHub(objects, opts), nil
}

// Around reads the rules on the hub that matter to one cluster: all of them or, for
// those who may see no others, the cluster's own and the defaults if they may.
func (s *Source) Around(ctx context.Context, cluster string) (config.Objects, error) {
	objects, err := Objects(ctx, s.env, s.hub)
	if !apierrors.IsForbidden(err) {
		return objects, err
	}
	own := &v1alpha1.TokenExchangePolicy{}
	switch err := s.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: v1alpha1.Name}, own); {
	case err == nil:
		objects.Policies = []v1alpha1.TokenExchangePolicy{*own}
	case !apierrors.IsNotFound(err):
		return objects, err
	}
	defaults := &v1alpha1.TokenExchangeDefaults{}
	if err := s.hub.Get(ctx, client.ObjectKey{Name: v1alpha1.Name}, defaults); err == nil {
		objects.Defaults = defaults
	}
	return objects, nil
}

// Objects reads the rules on a hub.
func Objects(ctx context.Context, env cli.Env, hub client.Reader) (config.Objects, error) {
	objects, err := tokenauthorizer.Objects(ctx, hub)
	if apimeta.IsNoMatchError(err) {
		return objects, cli.Blockedf("update it with: "+env.Command("init"), "the hub has no TokenExchangePolicies: an older release runs there")
	}
	return objects, err
}
