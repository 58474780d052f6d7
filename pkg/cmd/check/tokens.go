package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/issuers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// most is how many of a kind a check names.
const most = 5

// tokenScope is the way of workloads' tokens on a hub.
type tokenScope struct {
	*hubScope
	flags  rules.Flags
	source *rules.Source
	self   policy.Account
	config *config.Config
	known  []issuers.Issuer
	// permissions are what the token authorizer needs.
	permissions policy.Permissions
}

func newTokens(env cli.Env) *cobra.Command {
	out := cli.NewOutput(cli.Text)
	var flags rules.Flags
	self := names.HubNamespace + "/" + names.TokenAuthorizer
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "Check how workload tokens are trusted and exchanged, on the hub",
		Long: `Check, on the hub, the way of workloads' tokens: which clusters publish their
keys, whether they are trusted, whether the token authorizer runs, what is
risky about its rules, and whether it may issue what they lead to. It only reads.

With --clusters-config it checks the file of a token authorizer that runs
elsewhere against this hub: the rules, and whether --service-account may issue
what they lead to.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := open(env)
			if err != nil {
				return err
			}
			t := &tokenScope{hubScope: &hubScope{scope: s}, flags: flags}
			var ok bool
			if t.self.Namespace, t.self.Name, ok = strings.Cut(self, "/"); !ok {
				return cli.Usagef("--service-account: %q is not NAMESPACE/NAME", self)
			}
			steps := t.steps()
			if flags.File != "" {
				steps = t.fileSteps()
			}
			return checks.Finish(env, out, run(cmd.Context(), "workload tokens on the hub "+s.config.Host, steps))
		},
	}
	cmd.Flags().StringVar(&self, "service-account", self, "ServiceAccount of the token authorizer, as NAMESPACE/NAME")
	flags.AddTo(cmd)
	out.AddTo(cmd)
	return cmd
}

func (t *tokenScope) steps() []step {
	return []step{
		{"the API server answers and is new enough", true, t.kubernetes("1.30.0")},
		{"the hub is installed", true, t.installed},
		{"the hub knows managed clusters", true, t.served},
		{"the hub checks the keys of clusters", false, t.deployment(names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName))},
		{"the token authorizer runs", false, t.authorizer},
		{"its rules can be used", true, t.usable},
		{"its rules are safe", false, t.wise},
		{"clusters publish their keys", false, t.published},
		{"the keys are trusted", false, t.trusted},
		{"clusters with keys have rules", false, t.ruled},
		{"the ServiceAccounts that rules lead to exist", false, t.targets},
		{"it may issue their tokens", false, t.permitted},
	}
}

// fileSteps are those for a token authorizer whose rules are in a file.
func (t *tokenScope) fileSteps() []step {
	return []step{
		{"the API server answers and is new enough", true, t.kubernetes("1.30.0")},
		{"its rules can be used", true, t.usable},
		{"its rules are safe", false, t.wise},
		{"the ServiceAccounts that rules lead to exist", false, t.targets},
		{"it may issue their tokens", false, t.permitted},
	}
}

// authorizer checks what exchanges tokens. There may be one that no init made.
func (t *tokenScope) authorizer(ctx context.Context) (status, string, string) {
	if t.manager.Annotations[names.AnnotationTokenAuthorizer] != "true" {
		return caution(t.fix(t.env.Command("init --feature token-authorizer")), "init made none on this hub")
	}
	return t.tokenAuthorizer(ctx)
}

// usable reads the rules.
func (t *tokenScope) usable(ctx context.Context) (status, string, string) {
	lint := t.flags.Command(t.env, "exchange policy lint")
	var err error
	if t.source, err = t.flags.Open(t.env); err != nil {
		return broken(err)
	}
	opts := t.source.Options()
	opts.Self = t.self
	t.config, err = t.source.Config(ctx, opts)
	switch {
	case err != nil:
		return bad(lint, "%v", err)
	case len(t.config.Clusters) == 0:
		return caution(t.env.Command("exchange allow CLUSTER NAMESPACE/NAME --to ..."), "%s has no rules: every request is denied", t.source)
	}
	var broke []string
	for i := range t.config.Clusters {
		if c := &t.config.Clusters[i]; policy.Failed(c.Findings) {
			broke = append(broke, c.Name())
		}
	}
	if len(broke) > 0 {
		return bad(lint, "everything is denied to %s", strings.ReplaceAll(some(broke), "\n", ", "))
	}
	return good("%s has rules for %d cluster(s)", t.source, len(t.config.Clusters))
}

// wise repeats what lint says.
func (t *tokenScope) wise(context.Context) (status, string, string) {
	lint := t.flags.Command(t.env, "exchange policy lint")
	var serious, risky []string
	for _, f := range t.config.Lint() {
		if f.Severity == policy.Error {
			serious = append(serious, f.String())
		} else {
			risky = append(risky, f.String())
		}
	}
	switch {
	case len(serious) > 0:
		return bad(lint, "%s", some(serious))
	case len(risky) > 0:
		return caution(lint, "%s", some(risky))
	}
	return good("")
}

// published looks at what agents say.
func (t *tokenScope) published(ctx context.Context) (status, string, string) {
	var err error
	if t.known, err = issuers.Gather(ctx, t.client, t.config); err != nil {
		return broken(err)
	}
	publish := "on the managed cluster: " + t.env.Elsewhere("issuer publish")
	var missing []string
	count := 0
	for _, i := range t.known {
		switch {
		case i.Reason == issuers.ReasonNotPublished:
			missing = append(missing, i.Cluster+" is configured to publish its keys and does not")
		case i.Source == issuers.SourceHub && i.Issuer != "":
			count++
		}
	}
	switch {
	case len(missing) > 0:
		return bad(publish, "%s", some(missing))
	case len(t.known) == 0:
		return caution(publish, "no cluster publishes its keys, and none are configured")
	}
	return good("%d cluster(s) publish, %d are configured", count, len(t.known)-count)
}

// trusted finds the issuers that are not.
func (t *tokenScope) trusted(context.Context) (status, string, string) {
	var refused []string
	for _, i := range t.known {
		if !i.Trusted && i.Reason != issuers.ReasonNotPublished && i.Reason != names.ReasonClusterNotAccepted {
			refused = append(refused, fmt.Sprintf("%s: %s (%s)", i.Cluster, i.Message, i.Reason))
		}
	}
	if len(refused) > 0 {
		return bad(t.flags.Command(t.env, "issuer list -o wide"), "%s", some(refused))
	}
	return good("")
}

// ruled finds clusters whose workloads may do nothing.
func (t *tokenScope) ruled(context.Context) (status, string, string) {
	rules := map[string]bool{}
	for i := range t.config.Clusters {
		rules[t.config.Clusters[i].Name()] = len(t.config.Clusters[i].Spec.Allow) > 0
	}
	var idle []string
	for _, i := range t.known {
		allowed, own := rules[i.Cluster]
		if i.Trusted && !allowed && (own || !rules[policy.AnyCluster]) {
			idle = append(idle, i.Cluster)
		}
	}
	if len(idle) > 0 {
		return caution(t.env.Command("exchange allow", idle[0], "NAMESPACE/NAME --to ..."), "no workload of %s may do anything", strings.ReplaceAll(some(idle), "\n", ", "))
	}
	return good("")
}

// targets finds ServiceAccounts that rules name and that are not there.
func (t *tokenScope) targets(ctx context.Context) (status, string, string) {
	var namespaces corev1.NamespaceList
	if err := t.client.List(ctx, &namespaces); err != nil {
		return broken(err)
	}
	known := policy.Known{Self: t.self}
	for i := range namespaces.Items {
		known.Namespaces = append(known.Namespaces, namespaces.Items[i].Name)
	}
	for _, i := range t.known {
		known.Clusters = append(known.Clusters, i.Cluster)
	}
	t.permissions = policy.RBAC(t.config.Specs(), known)
	var missing []string
	for i := range t.permissions.Roles {
		for _, name := range accounts(&t.permissions.Roles[i]) {
			key := client.ObjectKey{Namespace: t.permissions.Roles[i].Namespace, Name: name}
			err := t.client.Get(ctx, key, &corev1.ServiceAccount{})
			if apierrors.IsNotFound(err) {
				missing = append(missing, key.String())
			} else if err != nil {
				return broken(err)
			}
		}
	}
	if len(missing) > 0 {
		return caution("create them, or fix the rules: "+t.flags.Command(t.env, "exchange policy lint"), "there is no ServiceAccount %s", strings.ReplaceAll(some(missing), "\n", ", "))
	}
	return good("")
}

// accounts are the ServiceAccounts whose tokens a Role permits to issue.
func accounts(role *rbacv1.Role) []string {
	var out []string
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "serviceaccounts/token") {
			out = append(out, rule.ResourceNames...)
		}
	}
	return out
}

// permitted asks the API server whether the token authorizer may do what its
// rules need.
func (t *tokenScope) permitted(ctx context.Context) (status, string, string) {
	grant := t.flags.Command(t.env, "exchange rbac") + " | " + t.env.Kubectl("apply -f -")
	var denied []string
	for i := range t.permissions.Roles {
		role := &t.permissions.Roles[i]
		for _, attributes := range needs(role) {
			allowed, err := t.may(ctx, attributes)
			if err != nil {
				return broken(err)
			}
			if !allowed {
				denied = append(denied, fmt.Sprintf("%s %s %s/%s", attributes.Verb, what(attributes), role.Namespace, attributes.Name))
			}
		}
	}
	if len(denied) > 0 {
		return bad(grant, "it may not:\n%s", some(denied))
	}
	if len(t.permissions.Open) > 0 {
		return caution(t.flags.Command(t.env, "exchange rbac"), "%s", some(t.permissions.Open))
	}
	return good("in %d namespace(s)", len(t.permissions.Roles))
}

func what(a authorizationv1.ResourceAttributes) string {
	return strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/")
}

// needs are the single requests that a Role allows.
func needs(role *rbacv1.Role) []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	for _, rule := range role.Rules {
		objects := rule.ResourceNames
		if len(objects) == 0 {
			objects = []string{""}
		}
		for _, resource := range rule.Resources {
			name, sub, _ := strings.Cut(resource, "/")
			for _, verb := range rule.Verbs {
				for _, object := range objects {
					out = append(out, authorizationv1.ResourceAttributes{
						Namespace: role.Namespace, Resource: name, Subresource: sub, Verb: verb, Name: object,
					})
				}
			}
		}
	}
	return out
}

func (t *tokenScope) may(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               names.ServiceAccountUser(t.self.Namespace, t.self.Name),
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + t.self.Namespace, "system:authenticated"},
		ResourceAttributes: &attributes,
	}}
	err := t.client.Create(ctx, review)
	return review.Status.Allowed, err
}

// some names a few of many.
func some(list []string) string {
	if len(list) <= most {
		return strings.Join(list, "\n")
	}
	return strings.Join(list[:most], "\n") + fmt.Sprintf("\nand %d more", len(list)-most)
}

// issuer checks what the hub says of the keys that a cluster publishes.
func (c *clusterScope) issuer(context.Context) (status, string, string) {
	said := apimeta.FindStatusCondition(c.cluster.Status.Conditions, names.ConditionIssuerTrusted)
	switch {
	case said == nil:
		return good("it publishes none")
	case said.Status != metav1.ConditionTrue:
		return bad(c.env.Command("issuer show", c.name), "%s (%s)", said.Message, said.Reason)
	}
	return good("%s", said.Message)
}

// issuer checks whether the agent publishes the keys of the cluster's tokens, if
// it is asked to.
func (a *agentScope) issuer(context.Context) (status, string, string) {
	if a.klusterlet.Annotations[names.AnnotationPublishIssuer] != "true" {
		return good("no request was made")
	}
	return condition(a.klusterlet.Status.Conditions, names.ConditionIssuerPublished, metav1.ConditionTrue,
		a.env.Kubectl("-n", a.namespace(), "get events"))
}
