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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/issuers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

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
	var flags rules.Flags
	self := names.HubNamespace + "/" + names.TokenAuthorizer
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "Check how workload tokens are trusted and exchanged, on the hub",
		Long: `Check, on the hub, the way of workloads' tokens: which clusters publish their
keys, whether they are trusted, whether the token authorizer runs, what is risky
about its rules, and whether it may issue what they lead to. It only reads.

With --clusters-config it checks the file of a token authorizer that runs
elsewhere against this hub: the rules, and whether --service-account may issue
what they lead to.`,
	}
	cmd.Flags().StringVar(&self, "service-account", self, "ServiceAccount of the token authorizer, as NAMESPACE/NAME")
	flags.AddTo(cmd)
	return newCheck(env, cmd, func(_ context.Context, s *scope, _ []string) (string, []finding.Step, error) {
		account, ok := cli.NamespacedName(self)
		if !ok {
			return "", nil, cli.Usagef("--service-account: %q is not NAMESPACE/NAME", self)
		}
		t := &tokenScope{hubScope: &hubScope{scope: s}, flags: flags, self: policy.Account(account)}
		steps := t.steps()
		if flags.File != "" {
			steps = t.fileSteps()
		}
		return "workload tokens on the hub " + s.config.Host, steps, nil
	})
}

func (t *tokenScope) steps() []finding.Step {
	return []finding.Step{
		{Name: "the API server answers and is new enough", Needed: true, Run: t.kubernetes(install.OldestHub)},
		{Name: "the hub is installed", Needed: true, Run: t.installed},
		{Name: "the hub knows managed clusters", Needed: true, Run: t.served},
		{Name: "the hub checks the keys of clusters", Run: t.deployment(names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName))},
		{Name: "the token authorizer runs", Run: t.authorizer},
		{Name: "its rules can be used", Needed: true, Run: t.usable},
		{Name: "its rules are safe", Run: t.wise},
		{Name: "clusters publish their keys", Run: t.published},
		{Name: "the keys are trusted", Run: t.trusted},
		{Name: "clusters with keys have rules", Run: t.ruled},
		{Name: "the ServiceAccounts that rules lead to exist", Run: t.targets},
		{Name: "it may issue their tokens", Run: t.permitted},
	}
}

// fileSteps are those for a token authorizer whose rules are in a file.
func (t *tokenScope) fileSteps() []finding.Step {
	return []finding.Step{
		{Name: "the API server answers and is new enough", Needed: true, Run: t.kubernetes(install.OldestHub)},
		{Name: "its rules can be used", Needed: true, Run: t.usable},
		{Name: "its rules are safe", Run: t.wise},
		{Name: "the ServiceAccounts that rules lead to exist", Run: t.targets},
		{Name: "it may issue their tokens", Run: t.permitted},
	}
}

// authorizer checks what exchanges tokens. There may be one that no init made.
func (t *tokenScope) authorizer(ctx context.Context) finding.Outcome {
	if t.manager.Annotations[names.AnnotationTokenAuthorizer] != "true" {
		return finding.Caution(t.fix(t.env.Command("init --feature token-authorizer")), "init made none on this hub")
	}
	return t.tokenAuthorizer(ctx)
}

// usable reads the rules.
func (t *tokenScope) usable(ctx context.Context) finding.Outcome {
	lint := t.flags.Command(t.env, "exchange policy lint")
	var err error
	if t.source, err = t.flags.Open(ctx, t.env); err != nil {
		return finding.Broken(err)
	}
	opts := t.source.Options()
	opts.Self = t.self
	t.config, err = t.source.Config(ctx, opts)
	switch {
	case err != nil:
		return finding.Bad(lint, "%v", err)
	case len(t.config.Clusters) == 0:
		return finding.Caution(t.env.Command("exchange allow CLUSTER NAMESPACE/NAME --to ..."), "%s has no rules: every request is denied", t.source)
	}
	var broke []string
	for i := range t.config.Clusters {
		if c := &t.config.Clusters[i]; policy.Failed(c.Findings) {
			broke = append(broke, c.Name())
		}
	}
	if len(broke) > 0 {
		return finding.Bad(lint, "everything is denied to %s", excerpt.List(broke, ", "))
	}
	return finding.Good("%s has rules for %d cluster(s)", t.source, len(t.config.Clusters))
}

// wise repeats what lint says.
func (t *tokenScope) wise(context.Context) finding.Outcome {
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
		return finding.Bad(lint, "%s", excerpt.List(serious, "\n"))
	case len(risky) > 0:
		return finding.Caution(lint, "%s", excerpt.List(risky, "\n"))
	}
	return finding.Good("")
}

// published looks at what agents say.
func (t *tokenScope) published(ctx context.Context) finding.Outcome {
	var err error
	if t.known, err = issuers.Gather(ctx, t.client, t.config); err != nil {
		return finding.Broken(err)
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
		return finding.Bad(publish, "%s", excerpt.List(missing, "\n"))
	case len(t.known) == 0:
		return finding.Caution(publish, "no cluster publishes its keys, and none are configured")
	}
	return finding.Good("%d cluster(s) publish, %d are configured", count, len(t.known)-count)
}

// trusted finds the issuers that are not.
func (t *tokenScope) trusted(context.Context) finding.Outcome {
	var refused []string
	for _, i := range t.known {
		if !i.Trusted && i.Reason != issuers.ReasonNotPublished && i.Reason != names.ReasonClusterNotAccepted {
			refused = append(refused, fmt.Sprintf("%s: %s (%s)", i.Cluster, i.Message, i.Reason))
		}
	}
	if len(refused) > 0 {
		return finding.Bad(t.flags.Command(t.env, "issuer list -o wide"), "%s", excerpt.List(refused, "\n"))
	}
	return finding.Good("")
}

// ruled finds clusters whose workloads may do nothing.
func (t *tokenScope) ruled(context.Context) finding.Outcome {
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
		return finding.Caution(t.env.Command("exchange allow", idle[0], "NAMESPACE/NAME --to ..."), "no workload of %s may do anything", excerpt.List(idle, ", "))
	}
	return finding.Good("")
}

// targets finds ServiceAccounts that rules name and that are not there.
func (t *tokenScope) targets(ctx context.Context) finding.Outcome {
	var namespaces corev1.NamespaceList
	if err := t.client.List(ctx, &namespaces); err != nil {
		return finding.Broken(err)
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
				return finding.Broken(err)
			}
		}
	}
	if len(missing) > 0 {
		return finding.Caution("create them, or fix the rules: "+t.flags.Command(t.env, "exchange policy lint"), "there is no ServiceAccount %s", excerpt.List(missing, ", "))
	}
	return finding.Good("")
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
func (t *tokenScope) permitted(ctx context.Context) finding.Outcome {
	grant := t.flags.Command(t.env, "exchange rbac") + " | " + t.env.Kubectl("apply -f -")
	var denied []string
	for i := range t.permissions.Roles {
		role := &t.permissions.Roles[i]
		for _, attributes := range needs(role) {
			allowed, err := access.Allowed(ctx, t.client, types.NamespacedName(t.self), attributes)
			if err != nil {
				return finding.Broken(err)
			}
			if !allowed {
				denied = append(denied, fmt.Sprintf("%s %s %s/%s", attributes.Verb, what(attributes), role.Namespace, attributes.Name))
			}
		}
	}
	if len(denied) > 0 {
		return finding.Bad(grant, "it may not:\n%s", excerpt.List(denied, "\n"))
	}
	if len(t.permissions.Open) > 0 {
		return finding.Caution(t.flags.Command(t.env, "exchange rbac"), "%s", excerpt.List(t.permissions.Open, "\n"))
	}
	return finding.Good("in %d namespace(s)", len(t.permissions.Roles))
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

// issuer checks what the hub says of the keys that a cluster publishes.
func (c *clusterScope) issuer(context.Context) finding.Outcome {
	said := apimeta.FindStatusCondition(c.cluster.Status.Conditions, names.ConditionIssuerTrusted)
	switch {
	case said == nil:
		return finding.Good("it publishes none")
	case said.Status != metav1.ConditionTrue:
		return finding.Bad(c.env.Command("issuer show", c.name), "%s (%s)", said.Message, said.Reason)
	}
	return finding.Good("%s", said.Message)
}

// issuer checks whether the agent publishes the keys of the cluster's tokens, if
// it is asked to.
func (a *agentScope) issuer(context.Context) finding.Outcome {
	if a.klusterlet.Annotations[names.AnnotationPublishIssuer] != "true" {
		return finding.Good("no request was made")
	}
	return condition(a.klusterlet.Status.Conditions, names.ConditionIssuerPublished, metav1.ConditionTrue,
		a.env.Kubectl("-n", a.namespace(), "get events"))
}
