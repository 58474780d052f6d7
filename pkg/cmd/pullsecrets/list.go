package pullsecrets

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	controller "github.com/kubectl-ocm/kubectl-ocm/pkg/install/pullsecrets"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// scope is the namespaces that a command looks at.
type scope struct {
	namespace string
	all       bool
}

func (s *scope) addTo(flags *pflag.FlagSet) {
	flags.StringVarP(&s.namespace, "namespace", "n", "", "Namespace; the one of the context by default")
	flags.BoolVarP(&s.all, "all-namespaces", "A", false, "All namespaces")
}

// chosen returns the namespace, empty for all.
func (s *scope) chosen(env cli.Env) (string, error) {
	if s.all {
		return "", nil
	}
	if s.namespace != "" {
		return s.namespace, nil
	}
	namespace, _, err := env.Kube.Loader().Namespace()
	return namespace, err
}

// presetOf returns whose pull secrets the controller renews, and AnyPreset where there
// is none or the user may not read its Deployment: who lists pull secrets of a
// namespace needs no rights elsewhere.
func presetOf(ctx context.Context, c client.WithWatch) (inventory.Preset, error) {
	args, err := controller.Runner{Runner: &install.Runner{Client: c}}.Args(ctx)
	if apierrors.IsForbidden(err) {
		return inventory.AnyPreset, nil
	}
	if args == nil || err != nil {
		return inventory.AnyPreset, err
	}
	config, err := configOf(args)
	if err != nil {
		return inventory.AnyPreset, nil //nolint:nilerr // "check" reports arguments that cannot be used
	}
	return inventory.PresetOf(config), nil
}

type listOptions struct {
	env   cli.Env
	out   *cli.Output
	scope scope
}

func newList(env cli.Env) *cobra.Command {
	o := &listOptions{env: env, out: cli.ListOutput()}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show pull secrets",
		Long: `Show pull secrets: for which registries they are, until when, and in which
state. Tokens are never shown.

STATE is Valid, Legacy for what OpenShift made from a token that never expires,
or the reason why the controller replaces the token. LISTED says whether the
ServiceAccount lists the Secret, so that new Pods get it.`,
		Example: fmt.Sprintf(`  # Pull secrets of all namespaces, with their keys and Pods
  %[1]s pull-secrets list -A -o wide`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.scope.addTo(cmd.Flags())
	o.out.AddTo(cmd)
	return cmd
}

func (o *listOptions) run(ctx context.Context) error {
	c, err := o.env.Kube.Client()
	if err != nil {
		return err
	}
	namespace, err := o.scope.chosen(o.env)
	if err != nil {
		return err
	}
	preset, err := presetOf(ctx, c)
	if err != nil {
		return err
	}
	found, err := inventory.Read(ctx, c, namespace, preset, o.env.Clock.Now())
	if err != nil {
		return err
	}
	if len(found.Secrets) == 0 && !o.out.Machine() {
		o.env.Say("No pull secrets found. Opt in with a namespace, or with a ServiceAccount:")
		o.env.Say("  %s", o.env.Kubectl("annotate namespace NAMESPACE", names.AnnotationPullSecret+"=true"))
		return nil
	}
	return cli.PrintList(o.env.Out, o.out, cli.Kind[inventory.PullSecret]{Name: "PullSecret", Ref: ref}, found.Secrets, o.columns())
}

// secretType is the type of Secrets in output.
const secretType = "secret"

func ref(p inventory.PullSecret) cli.Ref {
	return cli.RefTo(secretType, p.Namespace, p.Name, time.Time{})
}

func (o *listOptions) columns() []cli.Column[inventory.PullSecret] {
	type row = inventory.PullSecret
	now := o.env.Clock.Now()
	var columns []cli.Column[row]
	if o.scope.all {
		columns = append(columns, cli.Column[row]{Header: "namespace", Value: func(p row) string { return p.Namespace }})
	}
	return append(columns, []cli.Column[row]{
		{Header: "service account", Value: func(p row) string { return p.ServiceAccount }},
		{Header: "secret", Value: func(p row) string { return p.Name }},
		{Header: "hosts", Value: func(p row) string { return o.hosts(p) }},
		{Header: "expires", Value: func(p row) string { return cli.Until(p.Expires, now) }},
		{Header: "state", Value: func(p row) string { return p.State }},
		{Header: "listed", Value: func(p row) string { return cli.YesNo(p.Listed) }},
		{Header: "pods", Wide: true, Value: func(p row) string { return strconv.Itoa(p.Pods) }},
		{Header: "audiences", Wide: true, Value: func(p row) string { return strings.Join(p.Audiences, ",") }},
		{Header: "key ids", Wide: true, Value: func(p row) string { return short(p.KeyIDs) }},
		{Header: "username", Wide: true, Value: func(p row) string { return strings.Join(p.Usernames, ",") }},
		{Header: "message", Wide: true, Rest: true, Value: func(p row) string { return p.Message }},
	}...)
}

// short are ids as a table shows them.
func short(ids []string) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = cli.Short(id)
	}
	return strings.Join(out, ",")
}

// hosts are the registries of a pull secret, only the first of them where the table
// must stay narrow.
func (o *listOptions) hosts(p inventory.PullSecret) string {
	if more := len(p.Hosts) - 1; more > 0 && o.out.Format != cli.Wide {
		return fmt.Sprintf("%s +%d", p.Hosts[0], more)
	}
	return strings.Join(p.Hosts, ",")
}
