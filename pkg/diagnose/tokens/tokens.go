package tokens

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/access"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/issuers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// Rules are the rules of the token exchange on a hub or in a file.
type Rules interface {
	// String names where the rules are.
	String() string
	// Config returns the configuration of a token authorizer with the rules.
	Config(ctx context.Context, opts config.Options) (*config.Config, error)
	// Command returns a command line of ours that reads the same rules.
	Command(args ...string) string
}

// exchange is a token exchange that is checked. The check that its rules can be used reads what
// later ones need.
type exchange struct {
	*hub.Hub

	rules Rules
	// self is the ServiceAccount of the token authorizer.
	self   policy.Account
	config *config.Config
	known  []issuers.Issuer
	// permissions are the permissions that the token authorizer needs.
	permissions policy.Permissions
}

// Steps returns the checks of the token exchange on a hub, whose token authorizer runs as self
// with the rules on the hub.
func Steps(s diagnose.Scope, rules Rules, self policy.Account) []finding.Step {
	t := &exchange{Hub: hub.New(s), rules: rules, self: self}
	return []finding.Step{
		t.Answers(install.OldestHub),
		t.Installed(),
		t.Serves(),
		{Name: "the hub checks the keys of clusters", Run: t.Deployment(names.HubNamespace, names.HubRegistrationDeployment(names.ClusterManagerName))},
		{Name: "the token authorizer runs", Run: t.authorizer},
		{Name: "its rules can be used", Needed: true, Run: t.usable},
		{Name: "its rules are safe", Run: t.safe},
		{Name: "clusters publish their keys", Run: t.published},
		{Name: "the keys are trusted", Run: t.trusted},
		{Name: "clusters with keys have rules", Run: t.ruled},
		{Name: "the ServiceAccounts that rules lead to exist", Run: t.targets},
		{Name: "it may issue their tokens", Run: t.permitted},
	}
}

// FileSteps returns the checks of a token authorizer that runs as self with rules in a file, and
// issues tokens of the cluster that is checked.
func FileSteps(s diagnose.Scope, rules Rules, self policy.Account) []finding.Step {
	t := &exchange{Hub: hub.New(s), rules: rules, self: self}
	return []finding.Step{
		t.Answers(install.OldestHub),
		{Name: "its rules can be used", Needed: true, Run: t.usable},
		{Name: "its rules are safe", Run: t.safe},
		{Name: "the ServiceAccounts that rules lead to exist", Run: t.targets},
		{Name: "it may issue their tokens", Run: t.permitted},
	}
}

// authorizer checks the token authorizer. One that init did not install may run elsewhere.
func (t *exchange) authorizer(ctx context.Context) finding.Outcome {
	if !t.WantsTokenAuthorizer() {
		return finding.Caution(t.Fix(t.Command("init --feature token-authorizer")), "init made none on this hub")
	}
	return t.TokenAuthorizer(ctx)
}

// usable reads the rules, and checks that each cluster has rules that can be used.
func (t *exchange) usable(ctx context.Context) finding.Outcome {
	lint := t.rules.Command("exchange policy lint")
	var err error
	t.config, err = t.rules.Config(ctx, config.Options{Self: t.self})
	switch {
	case err != nil:
		return finding.Bad(lint, "%v", err)
	case len(t.config.Clusters) == 0:
		return finding.Caution(t.Command("exchange allow CLUSTER NAMESPACE/NAME --to ..."), "%s has no rules: every request is denied", t.rules)
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
	return finding.Good("%s has rules for %d cluster(s)", t.rules, len(t.config.Clusters))
}

// safe repeats what lint reports.
func (t *exchange) safe(context.Context) finding.Outcome {
	lint := t.rules.Command("exchange policy lint")
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

// published checks that agents publish the keys that the rules expect.
func (t *exchange) published(ctx context.Context) finding.Outcome {
	var err error
	if t.known, err = issuers.Gather(ctx, t.Client, t.config); err != nil {
		return finding.Broken(err)
	}
	publish := t.OnManagedCluster("issuer publish")
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

// trusted reports the issuers that are not trusted.
func (t *exchange) trusted(context.Context) finding.Outcome {
	var refused []string
	for _, i := range t.known {
		if !i.Trusted && i.Reason != issuers.ReasonNotPublished && i.Reason != names.ReasonClusterNotAccepted {
			refused = append(refused, fmt.Sprintf("%s: %s (%s)", i.Cluster, i.Message, i.Reason))
		}
	}
	if len(refused) > 0 {
		return finding.Bad(t.rules.Command("issuer list -o wide"), "%s", excerpt.List(refused, "\n"))
	}
	return finding.Good("")
}

// ruled reports the trusted clusters whose workloads no rule allows anything.
func (t *exchange) ruled(context.Context) finding.Outcome {
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
		return finding.Caution(t.Command("exchange allow", idle[0], "NAMESPACE/NAME --to ..."), "no workload of %s may do anything", excerpt.List(idle, ", "))
	}
	return finding.Good("")
}

// targets reports the ServiceAccounts that rules name and that do not exist.
func (t *exchange) targets(ctx context.Context) finding.Outcome {
	var namespaces corev1.NamespaceList
	if err := t.Client.List(ctx, &namespaces); err != nil {
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
			err := t.Client.Get(ctx, key, &corev1.ServiceAccount{})
			if apierrors.IsNotFound(err) {
				missing = append(missing, key.String())
			} else if err != nil {
				return finding.Broken(err)
			}
		}
	}
	if len(missing) > 0 {
		return finding.Caution("create them, or fix the rules: "+t.rules.Command("exchange policy lint"), "there is no ServiceAccount %s", excerpt.List(missing, ", "))
	}
	return finding.Good("")
}

// accounts returns the ServiceAccounts for which a Role permits to issue tokens.
func accounts(role *rbacv1.Role) []string {
	var out []string
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "serviceaccounts/token") {
			out = append(out, rule.ResourceNames...)
		}
	}
	return out
}

// permitted asks the API server whether the token authorizer has the permissions that its rules
// need.
func (t *exchange) permitted(ctx context.Context) finding.Outcome {
	grant := t.rules.Command("exchange rbac") + " | " + t.Kubectl("apply -f -")
	var denied []string
	for i := range t.permissions.Roles {
		role := &t.permissions.Roles[i]
		for _, attributes := range needs(role) {
			allowed, err := access.Allowed(ctx, t.Client, types.NamespacedName(t.self), attributes)
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
		return finding.Caution(t.rules.Command("exchange rbac"), "%s", excerpt.List(t.permissions.Open, "\n"))
	}
	return finding.Good("in %d namespace(s)", len(t.permissions.Roles))
}

// what returns the resource of a request, with its subresource.
func what(a authorizationv1.ResourceAttributes) string {
	return strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/")
}

// needs returns the single requests that a Role allows.
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
