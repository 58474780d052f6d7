package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
)

// Rules is the usable policy of one cluster. It is immutable, and a nil *Rules
// allows nothing.
type Rules struct {
	cluster string
	rules   []rule
	deny    []deny
	bound   globs
	self    Account
}

// rule is a compiled Rule.
type rule struct {
	name               string
	path               string
	namespaces         globs
	accounts           globs
	audiences          []string
	requirePod         bool
	namespace, account template
	bound              globs
	boundless          bool
	target             Target
	expiration         time.Duration
}

type deny struct {
	namespaces, accounts globs
}

// Compile checks a policy and makes it usable. All that is wrong is returned at
// once; Rules are nil when a finding is an Error. Lint says more.
func Compile(s Spec) (*Rules, []Finding) {
	r := &Rules{cluster: s.Cluster, self: s.Self, bound: compileGlobs(s.Bound)}
	rep := &report{path: s.Path}
	rep.patterns("targetNamespaces", s.Bound)
	for i, allow := range s.Allow {
		rep.path = join(s.Path, fmt.Sprintf("allow[%d]", i))
		c := compileRule(s, allow, rep)
		c.name, c.path = fmt.Sprintf("%s/allow[%d]", s.Cluster, i), rep.path
		if s.Open {
			c.name, c.path = s.Cluster+"/same-name", s.Path
		}
		r.rules = append(r.rules, c)
	}
	for _, d := range slices.Concat(AlwaysDenied(), s.Deny) {
		r.deny = append(r.deny, deny{compileGlobs(d.TargetNamespaces), compileGlobs(d.TargetServiceAccounts)})
	}
	if Failed(rep.findings) {
		return nil, rep.findings
	}
	return r, rep.findings
}

// CheckDeny returns what is wrong with deny rules that stand at path.
func CheckDeny(path string, denies []v1alpha1.Denial) []Finding {
	rep := &report{}
	for i, d := range denies {
		rep.path = fmt.Sprintf("%s[%d]", path, i)
		rep.patterns("targetNamespaces", d.TargetNamespaces)
		rep.patterns("targetServiceAccounts", d.TargetServiceAccounts)
		if len(d.TargetNamespaces)+len(d.TargetServiceAccounts) == 0 {
			rep.add(Error, "", "name targetNamespaces or targetServiceAccounts", "the rule denies nothing in particular")
		}
	}
	return rep.findings
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

func compileRule(s Spec, in v1alpha1.Rule, rep *report) rule {
	target := ptr.Deref(in.Target, v1alpha1.Target{})
	rep.patterns("namespaces", in.Namespaces)
	rep.patterns("serviceAccounts", in.ServiceAccounts)
	rep.patterns("target.namespaces", target.Namespaces)
	c := rule{
		namespaces: compileGlobs(in.Namespaces), accounts: compileGlobs(in.ServiceAccounts),
		audiences: in.Audiences, requirePod: in.RequireBoundPod,
		bound: compileGlobs(target.Namespaces), boundless: len(target.Namespaces) == 0,
		expiration: cmp.Or(time.Duration(target.ExpirationSeconds)*time.Second, s.Expiration, DefaultExpiration),
	}
	if c.expiration < MinExpiration {
		rep.add(Error, "target.expirationSeconds", "ask for 600 or more",
			"%d seconds are less than an API server grants", int(c.expiration.Seconds()))
	}
	c.mapping(s, in.MapTo, rep)
	c.target = Target{Audiences: target.Audiences, Expiration: c.expiration}
	c.target.Namespace = c.namespace.fixed()
	c.target.Name = c.account.fixed()
	return c
}

// mapping compiles the targets of a rule and checks that it reaches no others.
func (c *rule) mapping(s Spec, m v1alpha1.Mapping, rep *report) {
	if m.Namespace == "" || m.Name == "" {
		rep.add(Error, "mapTo", "write mapTo: {namespace: ..., name: ...}", "it does not say which ServiceAccount of the hub the rule leads to")
		return
	}
	before := len(rep.findings)
	var err error
	if c.namespace, err = parseTemplate(m.Namespace, s.Cluster); err != nil {
		rep.add(Error, "mapTo.namespace", "", "%v", err)
	}
	if c.account, err = parseTemplate(m.Name, s.Cluster); err != nil {
		rep.add(Error, "mapTo.name", "", "%v", err)
	}
	if len(rep.findings) > before {
		return
	}
	c.renderable(rep)
	if c.namespace.ambiguous() || c.account.ambiguous() {
		rep.add(Error, "mapTo", `put a dot between the placeholders, as in "{namespace}.{name}", and use {name} once`,
			"two ServiceAccounts of the cluster can become the same one of the hub (a-b + c and a + b-c)")
	}
	if !s.Open {
		c.bounded(rep)
	}
}

// renderable checks that the templates can make valid names at all.
func (c *rule) renderable(rep *report) {
	sample := source{cluster: "c", namespace: "n", name: "s"}
	if problems := validation.IsDNS1123Label(c.namespace.render(sample)); len(problems) > 0 {
		rep.add(Error, "mapTo.namespace", "use lower case letters, digits and dashes", "it makes no valid namespace: %s", problems[0])
	}
	if problems := validation.IsDNS1123Subdomain(c.account.render(sample)); len(problems) > 0 {
		rep.add(Error, "mapTo.name", "use lower case letters, digits, dashes and dots", "it makes no valid ServiceAccount name: %s", problems[0])
	}
}

// bounded checks that the managed cluster cannot choose among all namespaces of
// the hub by what it calls its own.
func (c *rule) bounded(rep *report) {
	switch {
	case !c.bound.unbounded():
	case c.namespace.uses(nameVar):
		rep.add(Error, "mapTo.namespace", "name the namespaces in target.namespaces",
			"who may create a ServiceAccount on the cluster chooses the namespace of the hub by its name")
	case c.namespace.uses(namespaceVar) && c.namespaces.unbounded():
		rep.add(Error, "mapTo.namespace", "list namespaces other than *, or target.namespaces", "the cluster can choose the namespace of the hub by what it calls its own")
	}
}

// patterns checks a list of patterns.
func (r *report) patterns(field string, patterns []string) {
	for _, p := range patterns {
		if !validPattern(p) {
			r.add(Error, field, "use lower case letters, digits, dashes and dots, with * for any characters", "%q matches no name", p)
		}
	}
}

func validPattern(p string) bool {
	if !strings.Contains(p, everything) {
		return subdomain(p)
	}
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-.*"
	return len(p) <= validation.DNS1123SubdomainMaxLength && strings.Trim(p, letters) == ""
}
