package rules

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/rulestore"
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

// Source is a Store with the command lines and the errors of its user.
type Source struct {
	*rulestore.Store

	env   cli.Env
	flags Flags
}

// Connect returns the source that the flags choose. Without a file it does not check that the
// cluster of the connection flags is a hub.
func (f *Flags) Connect(env cli.Env) (*Source, error) {
	s := &Source{env: env, flags: *f}
	if f.File != "" {
		s.Store = rulestore.InFile(f.File)
		return s, nil
	}
	hub, err := env.Kube.Of(f.Hub).Client()
	s.Store = rulestore.OnHub(hub)
	s.Mode = map[cli.DryRun]rulestore.Mode{cli.DryRunClient: rulestore.Preview, cli.DryRunServer: rulestore.Try}[env.Kube.DryRun()]
	return s, err
}

// Open returns the source that the flags choose. Without a file, the cluster of
// the connection flags must be a hub.
func (f *Flags) Open(ctx context.Context, env cli.Env) (*Source, error) {
	s, err := f.Connect(env)
	if err != nil || s.Hub() == nil {
		return s, err
	}
	return s, fleet.RequireHub(ctx, env, s.Hub())
}

// Command is a command line, for messages, that reads the rules from the source.
func (s *Source) Command(args ...string) string { return s.flags.Command(s.env, args...) }

// Config returns the configuration that a token authorizer with these rules has.
func (s *Source) Config(ctx context.Context, opts config.Options) (*config.Config, error) {
	c, err := s.Store.Config(ctx, opts)
	return c, Explain(s.env, err)
}

// Explain maps an error of a Store to its exit code and the next step.
func Explain(env cli.Env, err error) error {
	if missing, ok := errors.AsType[*rulestore.FileMissingError](err); ok {
		return cli.NotFoundf("check the path of --clusters-config", "%v", missing)
	}
	if old, ok := errors.AsType[*rulestore.NotServedError](err); ok {
		return cli.Blockedf("update it with: "+env.Command("init"), "%v", old)
	}
	if missing, ok := errors.AsType[*rulestore.NoNamespaceError](err); ok {
		return cli.NotFoundf("join it, or accept it if it waits: "+env.Command("get clusters"), "%v", missing)
	}
	if invalid, ok := errors.AsType[*rulestore.InvalidError](err); ok {
		try := ""
		if invalid.Already {
			try = "fix them first: " + env.Command("exchange policy lint") + " shows what is wrong"
		}
		return cli.Blockedf(try, "%v", invalid)
	}
	if owned, ok := errors.AsType[*rulestore.OwnedError](err); ok {
		return cli.Blockedf("make the change where the rules come from, such as in a Git repository, or take the fields over with --force-conflicts", "%v", owned)
	}
	return err
}

// Ref refers to the object of a change in output.
func Ref(c rulestore.Change) cli.Ref { return ref(c.Object.GetNamespace()) }

// PolicyRef refers to the policy of a cluster in output.
func PolicyRef(cluster string) cli.Ref { return ref(cluster) }

// ref refers to the policy in a namespace, or without one to the defaults.
func ref(namespace string) cli.Ref {
	kind := schema.GroupKind{Group: v1alpha1.GroupName, Kind: "TokenExchangePolicy"}
	if namespace == "" {
		kind.Kind = "TokenExchangeDefaults"
	}
	return cli.RefToKind(kind, namespace, v1alpha1.Name)
}
