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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/publish"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/issuers"
)

// format is what is written.
type format string

const formatAuthentication format = "authentication-config"

type exportOptions struct {
	env       cli.Env
	rules     rules.Flags
	format    format
	audiences []string
	clusters  []string
	hubIssuer string
}

func newExport(env cli.Env) *cobra.Command {
	o := &exportOptions{env: env, format: formatAuthentication}
	cmd := &cobra.Command{
		Use:   "export [CLUSTER...]",
		Short: "Export the trusted issuers as API server configuration, on the hub",
		Long: `Export the issuers that the hub trusts as an AuthenticationConfiguration, for
the flag --authentication-config of kube-apiserver (1.34 or newer).

Clusters that it cannot express are left out, with the reason on stderr.`,
		Example: fmt.Sprintf(`  # For the hub's own API server
  %[1]s issuer export --audience https://hub.example.com`, env.Name),
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.clusters = args
			return o.run(cmd.Context())
		},
	}
	o.rules.AddTo(cmd)
	f := cmd.Flags()
	cli.NewEnum(&o.format, nil, formatAuthentication).AddTo(cmd, "format", "", "Format of the output")
	f.StringSliceVar(&o.audiences, "audience", nil, "Audience that tokens must have (default: as configured)")
	f.StringVar(&o.hubIssuer, "hub-issuer", "", "Issuer of the API server itself, which must not be repeated (default: read from the API server)")
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
	written, left, err := authentication(list, o.ownIssuer(ctx, known))
	if err != nil {
		return err
	}
	for _, l := range left {
		o.env.Warn("cluster %s is left out: %s", l.cluster, l.why)
	}
	if len(left) == len(list) {
		return cli.Blockedf("see what is known: "+o.rules.Command(o.env, "issuer list"), "none of the issuers can be exported")
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

// unusable says why an issuer cannot be exported.
func unusable(issuer issuers.Issuer) string {
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
		if other.Issuer == issuer.Issuer && other.Cluster != issuer.Cluster && unusable(other) == "" {
			others = append(others, other.Cluster)
		}
	}
	return strings.Join(others, ", ")
}
