package issuer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/issuers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/publish"
)

// target is what an export is for.
type target string

const (
	targetAuthentication target = "authentication-config"
	targetIstio          target = "istio"
	targetVault          target = "vault"
)

type exportOptions struct {
	env       cli.Env
	rules     rules.Flags
	format    target
	audiences []string
	clusters  []string
	namespace string
	hubIssuer string
}

func newExport(env cli.Env) *cobra.Command {
	o := &exportOptions{env: env}
	cmd := &cobra.Command{
		Use:   "export --format FORMAT [CLUSTER...]",
		Short: "Write the trusted issuers in the words of another verifier, on the hub",
		Long: `Write the issuers that the hub trusts in the words of another verifier:

  authentication-config  AuthenticationConfiguration of kube-apiserver (1.34 or
                         newer), for --authentication-config
  istio                  a RequestAuthentication of Istio
  vault                  shell commands for Vault's JWT auth method, one mount
                         for each cluster

What cannot be said in these words is left out, with the reason on stderr. Keys
are written as they are now: export again after a cluster has rotated them,
unless the other side fetches them itself.`,
		Example: fmt.Sprintf(`  # For the hub's own API server
  %[1]s issuer export --format authentication-config --audience https://hub.example.com

  # One cluster, for Vault
  %[1]s issuer export --format vault cluster1 | sh`, env.Name),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.clusters = args
			if o.format == "" {
				return cli.Usagef("--format is missing: authentication-config, istio or vault")
			}
			return o.run(cmd.Context())
		},
	}
	o.rules.AddTo(cmd)
	f := cmd.Flags()
	cli.NewEnum(&o.format, nil, targetAuthentication, targetIstio, targetVault).AddTo(cmd, "format", "", "what to write for")
	f.StringSliceVar(&o.audiences, "audience", nil, "audience that tokens must have (default: as configured)")
	f.StringVar(&o.namespace, "istio-namespace", "istio-system", "namespace of the RequestAuthentication")
	f.StringVar(&o.hubIssuer, "hub-issuer", "", "the API server's own issuer, which authentication-config must not repeat (default: asked)")
	return cmd
}

func (o *exportOptions) run(ctx context.Context) error {
	known, err := gather(ctx, o.env, o.rules)
	if err != nil {
		return err
	}
	list, err := o.choose(known)
	if err != nil {
		return err
	}
	var written []byte
	var left []omission
	switch o.format {
	case targetIstio:
		written, left, err = istio(list, o.namespace)
	case targetVault:
		written, left, err = vault(list)
	default:
		own := o.ownIssuer(ctx, known)
		written, left, err = authentication(list, own)
	}
	if err != nil {
		return err
	}
	for _, l := range left {
		o.env.Warn("cluster %s is left out: %s", l.cluster, l.why)
	}
	if len(left) == len(list) {
		return cli.Blockedf("see what is known: "+o.rules.Command(o.env, "issuer list"), "nothing can be written for %s", o.format)
	}
	_, err = o.env.Out.Write(written)
	return err
}

// choose returns the issuers that were asked for, with the audiences that they
// are written with.
func (o *exportOptions) choose(known known) ([]issuers.Issuer, error) {
	var list []issuers.Issuer
	for _, issuer := range known.list {
		if len(o.clusters) > 0 && !slices.Contains(o.clusters, issuer.Cluster) {
			continue
		}
		if len(o.audiences) > 0 {
			issuer.Audiences = o.audiences
		}
		list = append(list, issuer)
	}
	for _, name := range o.clusters {
		if _, err := known.find(o.env, name); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, cli.NotFoundf("a managed cluster publishes its own with: "+o.env.Elsewhere("issuer publish"), "no issuer is known")
	}
	return list, nil
}

// ownIssuer is the issuer of the API server that an AuthenticationConfiguration
// is for.
func (o *exportOptions) ownIssuer(ctx context.Context, known known) string {
	if o.hubIssuer != "" || known.source.Hub() == nil {
		return o.hubIssuer
	}
	config, err := o.env.Kube.Config()
	if err == nil {
		var source *publish.Source
		if source, err = publish.NewSource(config, types.NamespacedName{}); err == nil {
			var own publish.Issuer
			if own, err = source.Read(ctx); err == nil {
				return own.Name
			}
		}
	}
	if !errors.Is(err, publish.ErrNotServed) {
		o.env.Warn("the API server's own issuer, which must not be repeated, is not known: %v; say it with --hub-issuer", err)
	}
	return ""
}

// omission is a cluster that cannot be written.
type omission struct {
	cluster string
	why     string
}

// untold says why an issuer cannot be written for anybody.
func untold(issuer issuers.Issuer) string {
	switch {
	case !issuer.Trusted:
		return "it is not trusted: " + issuer.Message
	case issuer.Issuer == "":
		return "its issuer is not known"
	}
	return ""
}

// namesakes are the other clusters of list with the same issuer.
func namesakes(list []issuers.Issuer, issuer issuers.Issuer) string {
	var others []string
	for _, other := range list {
		if other.Issuer == issuer.Issuer && other.Cluster != issuer.Cluster && untold(other) == "" {
			others = append(others, other.Cluster)
		}
	}
	return strings.Join(others, ", ")
}
