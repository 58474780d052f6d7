package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// Decide returns what id may become. Errors are *denial.Error with NotAllowed,
// NotBound or TargetDenied. It does no I/O; the slices of a Grant are shared
// and must not be changed.
func (r *Rules) Decide(id subject.Identity) (Grant, error) {
	if r == nil {
		return Grant{}, denial.New(denial.NotAllowed, "cluster %s has no rules", id.Cluster)
	}
	if !label(id.Account.Namespace) || !subdomain(id.Account.Name) {
		return Grant{}, denial.New(denial.NotAllowed, "%q/%q is no valid ServiceAccount name", id.Account.Namespace, id.Account.Name)
	}
	for i := range r.rules {
		c := &r.rules[i]
		if c.misses(id) != "" {
			continue
		}
		return r.grant(c, id)
	}
	return Grant{}, denial.New(denial.NotAllowed, "%s", r.notAllowed(id))
}

// Considered is the outcome of one rule for an identity.
type Considered struct {
	// Rule is the name as in Grant.Rule.
	Rule string
	// Matched is set for the one that decides.
	Matched bool
	// Missed says why it did not match.
	Missed string
}

// Consider returns which rules were tried for id, in order, up to the one that
// decides. It is Decide, for explanations.
func (r *Rules) Consider(id subject.Identity) []Considered {
	var out []Considered
	if r == nil {
		return nil
	}
	for i := range r.rules {
		missed := r.rules[i].misses(id)
		out = append(out, Considered{Rule: r.rules[i].name, Matched: missed == "", Missed: missed})
		if missed == "" {
			break
		}
	}
	return out
}

// misses says why a rule is not about id; empty when it is.
func (c *rule) misses(id subject.Identity) string {
	switch {
	case !c.namespaces.match(id.Account.Namespace):
		return "it is for other namespaces"
	case !c.accounts.match(id.Account.Name):
		return "it is for other ServiceAccounts"
	case len(c.audiences) > 0 && !shares(c.audiences, id.Token.Audiences):
		return "it is for tokens with other audiences"
	}
	return ""
}

func shares(a, b []string) bool {
	for _, x := range a {
		if slices.Contains(b, x) {
			return true
		}
	}
	return false
}

// grant applies the rule that matched.
func (r *Rules) grant(c *rule, id subject.Identity) (Grant, error) {
	if c.requirePod && (id.Bound.Pod.Name == "" || id.Bound.Pod.UID == "") {
		return Grant{}, denial.New(denial.NotBound, "rule %s takes only tokens that are bound to a Pod, and this one is not; use a projected volume", c.name)
	}
	from := source{cluster: id.Cluster, namespace: id.Account.Namespace, name: id.Account.Name}
	target := c.target
	if target.Namespace == "" {
		target.Namespace = c.namespace.render(from)
	}
	if target.Name == "" {
		target.Name = c.account.render(from)
	}
	if why := r.denied(c, target); why != "" {
		return Grant{}, denial.New(denial.TargetDenied, "rule %s leads to ServiceAccount %s/%s of the hub, %s", c.name, target.Namespace, target.Name, why)
	}
	return Grant{Rule: c.name, Target: target}, nil
}

// denied says why a target is out of reach; empty when it is not.
func (r *Rules) denied(c *rule, target Target) string {
	switch {
	case !label(target.Namespace):
		return "whose namespace is no valid one (DNS label of at most 63 characters)"
	case !subdomain(target.Name):
		return "whose name is no valid one (at most 253 characters)"
	case !c.boundless && !c.bound.match(target.Namespace):
		return "which is outside of the namespaces that the rule names"
	case !r.bound.match(target.Namespace):
		return "which is outside of the policy's targetNamespaces"
	case r.self.Name != "" && target.Namespace == r.self.Namespace && target.Name == r.self.Name:
		return "which is the token authorizer itself"
	}
	for i := range r.deny {
		if r.deny[i].namespaces.match(target.Namespace) && r.deny[i].accounts.match(target.Name) {
			return "which no rule can open (deny list)"
		}
	}
	return ""
}

// notAllowed says why no rule is about id, with the nearest miss.
func (r *Rules) notAllowed(id subject.Identity) string {
	who := id.Account.Namespace + "/" + id.Account.Name + " of cluster " + id.Cluster
	if len(r.rules) == 0 {
		return "no rule allows " + who + ": its cluster has none"
	}
	for i := range r.rules {
		c := &r.rules[i]
		if c.namespaces.match(id.Account.Namespace) && c.accounts.match(id.Account.Name) {
			return "rule " + c.name + " is about " + who + " but takes only tokens for the audiences " + strings.Join(c.audiences, ", ")
		}
	}
	return "no rule allows " + who
}

// label reports whether s is a DNS-1123 label. It allocates nothing, unlike the
// library's.
func label(s string) bool {
	return len(s) <= validation.DNS1123LabelMaxLength && dns(s, false)
}

// subdomain reports whether s is a DNS-1123 subdomain.
func subdomain(s string) bool {
	return len(s) <= validation.DNS1123SubdomainMaxLength && dns(s, true)
}

func dns(s string, dots bool) bool {
	before := byte('.')
	for i := range len(s) {
		c := s[i]
		separates := c == '-' && before != '.' || c == '.' && dots && before != '.' && before != '-'
		if !alphanumeric(c) && !separates {
			return false
		}
		before = c
	}
	return alphanumeric(before)
}

func alphanumeric(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
