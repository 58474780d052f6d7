package legacytokens

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/legacytoken"
)

// recent is how many days ago a use counts as recent, by default.
const recent = 30

// secretType is what -o name puts before the name of a Secret.
const secretType = "secret"

// selection says which legacy tokens a command is about.
type selection struct {
	env       cli.Env
	namespace string
	anywhere  bool
	labels    string
	verdicts  []legacytoken.Assessment
	recent    days

	// all is for commands that need names otherwise; names are what was typed.
	all   bool
	names []types.NamespacedName
	// cluster is set when the inventory was read.
	cluster client.Client
}

// addTo registers the flags that all commands have.
func (s *selection) addTo(cmd *cobra.Command) {
	s.recent = recent
	flags := cmd.Flags()
	flags.StringVarP(&s.namespace, "namespace", "n", "", "namespace to look into; empty means that of the kubeconfig context")
	flags.BoolVarP(&s.anywhere, "all-namespaces", "A", false, "look into all namespaces")
	flags.StringVarP(&s.labels, "selector", "l", "", "select Secrets by their labels")
	verdict := cli.NewEnumSlice(&s.verdicts, nil, legacytoken.Assessments()...).AddTo(cmd, "verdict", "", "select tokens by their verdict, see list --help")
	verdict.Value = verdicts{verdict.Value}
	flags.Var(&s.recent, "recent", "how many days ago a use counts as recent")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
}

// verdicts is a flag value whose choices are too many for a line of help.
type verdicts struct{ pflag.Value }

// Type implements pflag.Value.
func (verdicts) Type() string { return "VERDICT,..." }

// parse reads the arguments of a command that needs names or --all.
func (s *selection) parse(args []string) error {
	if s.all == (len(args) > 0) {
		return cli.Usagef("name legacy token Secrets as NAMESPACE/NAME, or use --all")
	}
	if len(args) > 0 && (s.labels != "" || len(s.verdicts) > 0 || s.anywhere) {
		return cli.Usagef("--selector, --verdict and --all-namespaces need --all")
	}
	for _, arg := range args {
		name, err := s.parseName(arg)
		if err != nil {
			return err
		}
		if !slices.Contains(s.names, name) {
			s.names = append(s.names, name)
		}
	}
	return nil
}

func (s *selection) parseName(arg string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(arg, "/")
	if namespace == secretType {
		ok, arg = false, name
	}
	if !ok {
		namespace, name = "", arg
	}
	if ok && len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, cli.Usagef("%q is neither NAMESPACE/NAME nor NAME", arg)
	}
	if !ok {
		var err error
		if namespace, err = s.current(); err != nil {
			return types.NamespacedName{}, err
		}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// current is the namespace that flags and kubeconfig choose.
func (s *selection) current() (string, error) {
	if s.namespace != "" {
		return s.namespace, nil
	}
	namespace, _, err := s.env.Kube.Loader().Namespace()
	return namespace, err
}

// scope is where to look.
func (s *selection) scope() (legacytoken.Scope, error) {
	selector, err := labels.Parse(s.labels)
	if err != nil {
		return legacytoken.Scope{}, cli.Usagef("--selector: %v", err)
	}
	scope := legacytoken.ScopeOf(s.names)
	scope.Selector = selector
	if len(s.names) > 0 || s.anywhere {
		return scope, nil
	}
	namespace, err := s.current()
	scope.Namespaces = []string{namespace}
	return scope, err
}

// gather reads the inventory, and leaves in it what is selected. A name that does
// not exist is an error.
func (s *selection) gather(ctx context.Context) (*legacytoken.Inventory, error) {
	scope, err := s.scope()
	if err != nil {
		return nil, err
	}
	if s.cluster, err = s.env.Kube.Client(); err != nil {
		return nil, err
	}
	inventory, err := legacytoken.Gather(ctx, s.cluster, scope, s.env.Clock.Now(), int(s.recent))
	if err != nil {
		return nil, err
	}
	s.warn(inventory)
	if len(s.names) == 0 {
		inventory.Limit(s.verdicts)
		return inventory, nil
	}
	err = inventory.Choose(s.names)
	if missing, ok := errors.AsType[*legacytoken.MissingError](err); ok {
		err = cli.NotFoundf("list them with: "+s.env.Command("legacy-tokens list -A"), "%v", missing)
	}
	return inventory, err
}

// warn says what the results cannot rest on.
func (s *selection) warn(inventory *legacytoken.Inventory) {
	if len(inventory.Tokens) == 0 {
		return
	}
	if len(inventory.Unlisted) > 0 {
		s.env.Warn("%s", cli.Fold("you may not list "+strings.Join(inventory.Unlisted, ", ")+": what they use is not known.", "  "))
	}
	if inventory.TrackedSince == "" {
		s.env.Warn("%s", cli.Fold("the API server does not say since when it records the use of tokens: that a token was not used is not known.", "  "))
	}
}

// where says where was looked, in a sentence.
func (s *selection) where() string {
	if s.anywhere {
		return "in any namespace"
	}
	namespace, err := s.current()
	if err != nil {
		return ""
	}
	return "in namespace " + namespace
}

// days is a flag value: a number of days. Labels of tokens hold dates, so nothing
// shorter is known.
type days int

var _ pflag.Value = (*days)(nil)

// String implements pflag.Value.
func (d *days) String() string { return fmt.Sprintf("%dd", *d) }

// Type implements pflag.Value.
func (d *days) Type() string { return "days" }

// Set implements pflag.Value.
func (d *days) Set(s string) error {
	n, err := strconv.Atoi(strings.TrimSuffix(s, "d"))
	if err != nil || n < 0 {
		return errors.New("must be a number of days such as 30d")
	}
	*d = days(n)
	return nil
}
