package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// LintOne says what is wrong or risky about one policy. It holds all that
// Compile finds.
func LintOne(s Spec) []Finding {
	rules, findings := Compile(s)
	if rules == nil {
		return findings
	}
	for i := range rules.rules {
		rep := &report{path: rules.rules[i].path}
		rules.lint(i, rep)
		if !s.Open { // What a file in tokensmith's form opens is said once, for the whole file.
			rules.advise(i, rep)
		}
		findings = append(findings, rep.findings...)
	}
	rep := &report{path: s.Path}
	rep.audiences(s.Audiences)
	if len(rules.rules) == 0 {
		rep.add(Info, "allow", "add a rule when a workload of it should reach the hub", "cluster %s has no rule, so nothing is allowed", s.Cluster)
	}
	return append(findings, rep.findings...)
}

// LintAudiences says what is risky about the field audiences at path.
func LintAudiences(path string, audiences []string) []Finding {
	rep := &report{path: path}
	rep.audiences(audiences)
	return rep.findings
}

// audiences finds those that tokens have which were made for something else.
func (r *report) audiences(audiences []string) {
	for _, audience := range audiences {
		if apiAudience(audience) {
			r.add(Warning, "audiences", "make the workloads ask for an audience of their own, such as the address of this hub",
				"%s is the audience of an API server: the token that every Pod has by default is taken", audience)
		}
	}
}

// lint finds what cannot work as it was meant.
func (r *Rules) lint(i int, rep *report) {
	r.unreachable(i, rep)
	r.deniedTargets(&r.rules[i], rep)
	r.rules[i].merged(rep)
}

// advise finds what works and opens more than needed.
func (r *Rules) advise(i int, rep *report) {
	c := &r.rules[i]
	c.wide(rep)
	c.choosing(rep)
	c.lifetime(rep)
	c.addOns(r.cluster, rep)
	rep.audiences(c.audiences)
	if r.cluster == AnyCluster && !c.namespace.uses(clusterVar) && !c.account.uses(clusterVar) {
		rep.add(Warning, "mapTo", "use {cluster} in it", "workloads of different clusters become the same ServiceAccount of the hub")
	}
}

// apiAudience reports whether an audience is one that API servers go by.
func apiAudience(audience string) bool {
	host := strings.TrimPrefix(audience, "https://")
	return host == "kubernetes" || host == "api" || host == "kubernetes.default" || strings.HasPrefix(host, "kubernetes.default.svc")
}

func (r *Rules) unreachable(i int, rep *report) {
	c := &r.rules[i]
	for j := range r.rules[:i] {
		e := &r.rules[j]
		hidden := covers(e.namespaces, c.namespaces) && covers(e.accounts, c.accounts)
		if hidden && (len(e.audiences) == 0 || len(c.audiences) > 0 && subset(c.audiences, e.audiences)) {
			rep.add(Warning, "", "move it up, or delete it", "%s takes all that the rule is about, so it is never used", e.path)
			return
		}
	}
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

// deniedTargets finds rules that cannot lead anywhere.
func (r *Rules) deniedTargets(c *rule, rep *report) {
	open := map[string]bool{} // Namespaces within the bounds: a rule has up to 64 names in each.
	for _, to := range c.reaches(r.cluster) {
		switch {
		case r.always(to):
			rep.add(Error, "mapTo", "lead it to a namespace of your own", "ServiceAccount %s of the hub is denied to every rule", to)
			return
		case !open[to.namespace] && r.outside(to):
			rep.add(Warning, "mapTo", "change one of the two", "namespace %s is none of the policy's targetNamespaces, so the rule leads nowhere", to.namespace)
			return
		case r.listed(to):
			rep.add(Warning, "mapTo", "lead it elsewhere", "ServiceAccount %s of the hub is on the deny list, so the rule leads nowhere", to)
			return
		case !open[to.namespace] && !c.boundless && !overlapAny([]string{to.namespace}, c.bound.patterns()):
			rep.add(Warning, "target.namespaces", "add it there", "namespace %s is none of those that the rule names, so it leads nowhere", to.namespace)
			return
		}
		open[to.namespace] = true
	}
}

// always reports whether all of to is denied in any configuration.
func (r *Rules) always(to reach) bool {
	if to.namespace == r.self.Namespace && to.name == r.self.Name && r.self.Name != "" {
		return true
	}
	return slices.ContainsFunc(r.deny[:len(AlwaysDenied())], func(d deny) bool { return d.covers(to) })
}

// listed reports whether all of to is on the deny list.
func (r *Rules) listed(to reach) bool {
	return slices.ContainsFunc(r.deny, func(d deny) bool { return d.covers(to) })
}

// outside reports whether all of to is outside of the policy's bound.
func (r *Rules) outside(to reach) bool {
	return !r.bound.unbounded() && !overlapAny([]string{to.namespace}, r.bound.patterns())
}

// shut reports whether to can never be reached.
func (r *Rules) shut(to reach) bool { return r.always(to) || r.listed(to) || r.outside(to) }

// covers is for patterns too: see the function of this name.
func (d deny) covers(to reach) bool {
	return d.namespaces.match(to.namespace) && d.accounts.match(to.name)
}

// merged finds different ServiceAccounts that become one.
func (c *rule) merged(rep *report) {
	var lost []string
	if !c.namespaces.single() && !c.namespace.uses(namespaceVar) && !c.account.uses(namespaceVar) {
		lost = append(lost, "namespaces")
	}
	if !c.accounts.single() && !c.namespace.uses(nameVar) && !c.account.uses(nameVar) {
		lost = append(lost, "names")
	}
	if len(lost) == 0 {
		return
	}
	severity := Info
	if slices.Contains(lost, "namespaces") && c.namespaces.unbounded() {
		severity = Warning
	}
	rep.add(severity, "mapTo", "use {namespace} and {name} if they should be kept apart",
		"ServiceAccounts with different %s become the same one of the hub", strings.Join(lost, " and "))
}

// wide finds rules that are about everything.
func (c *rule) wide(rep *report) {
	switch {
	case c.namespaces.unbounded() && c.accounts.unbounded():
		rep.add(Warning, "", "list the namespaces and serviceAccounts that need it", "every ServiceAccount of the cluster matches")
	case c.namespaces.unbounded():
		rep.add(Warning, "namespaces", "list the namespaces that need it", "every namespace of the cluster matches: who may create one there gets what the rule gives")
	case c.accounts.unbounded():
		rep.add(Info, "serviceAccounts", "list the serviceAccounts that need it", "every ServiceAccount of these namespaces matches")
	}
}

// choosing finds rules with which a cluster chooses among namespaces of the hub.
func (c *rule) choosing(rep *report) {
	if !c.namespace.uses(namespaceVar) && !c.namespace.uses(nameVar) || len(c.bound.exact) > 0 && len(c.bound.wild) == 0 {
		return
	}
	for _, to := range c.reaches(everything) {
		if wild(to.namespace) {
			rep.add(Warning, "mapTo", "list the namespaces by name", "the cluster chooses the namespace of the hub, any of %s, by what it calls its own", to.namespace)
			return
		}
	}
}

// addOns finds rules with which a user who may name a ServiceAccount on the cluster
// can become one of its add-ons, whose accounts are in the cluster's namespace
// and end in "-agent" (names.AddOnServiceAccount). A dot keeps out of
// their way.
func (c *rule) addOns(cluster string, rep *report) {
	for _, to := range c.reaches(cluster) {
		if to.namespace == cluster && wild(to.name) && !strings.Contains(to.name, ".") && overlap(to.name, "*-agent") {
			rep.add(Warning, "mapTo", `use "{namespace}.{name}", or a namespace without add-ons`,
				"it can lead to the account of an add-on of the cluster (%s is where they are)", to.namespace)
			return
		}
	}
}

// longLife is from when on a token's life is remarkable.
const longLife = 24 * time.Hour

func (c *rule) lifetime(rep *report) {
	if c.expiration > longLife {
		rep.add(Warning, "target.expirationSeconds", "ask for an hour: tokens are renewed in time",
			"a token that leaks is valid for up to %d hours", int(c.expiration.Hours()))
	}
}

// place is one rule among those of all clusters.
type place struct {
	cluster, path string
	to            reach
}

// LintTogether says what policies open together that none opens by itself.
func LintTogether(specs []Spec) []Finding {
	var (
		places   []place
		clusters []string
	)
	for _, s := range specs {
		rules, _ := Compile(s)
		if rules == nil || s.Open {
			continue
		}
		clusters = append(clusters, s.Cluster)
		for i := range rules.rules {
			c := &rules.rules[i]
			for _, to := range c.reaches(s.Cluster) {
				places = append(places, place{s.Cluster, c.path, to})
			}
		}
	}
	return append(foreign(places, clusters), collisions(places)...)
}

// foreign finds rules that lead into the namespace of another managed cluster,
// where that cluster's own accounts are.
func foreign(places []place, clusters []string) []Finding {
	var out []Finding
	for _, p := range places {
		if p.to.namespace != p.cluster && p.cluster != AnyCluster && slices.Contains(clusters, p.to.namespace) {
			rep := &report{path: p.path}
			rep.add(Warning, "mapTo", "lead it to a namespace of its own", "namespace %s of the hub belongs to another cluster", p.to.namespace)
			out = append(out, rep.findings...)
		}
	}
	return out
}

// collisions finds accounts of the hub that several rules lead to. Only
// patterns have to be compared with everything.
func collisions(places []place) []Finding {
	m := meetings{seen: map[string]bool{}}
	first := map[reach][]place{}
	var wide, exact []place
	for _, p := range places {
		if !p.to.exact() {
			wide = append(wide, p)
			continue
		}
		exact = append(exact, p)
		for _, other := range first[p.to] {
			m.add(Info, other, p)
		}
		first[p.to] = append(first[p.to], p)
	}
	for i, w := range wide {
		m.compare(w, wide[:i])
		m.compare(w, exact)
	}
	return m.findings
}

// meetings collects pairs of rules that lead to one account, each pair once.
type meetings struct {
	seen     map[string]bool
	findings []Finding
}

func (m *meetings) compare(w place, others []place) {
	for _, other := range others {
		if w.to.overlaps(other.to) {
			m.add(Warning, other, w)
		}
	}
}

func (m *meetings) add(severity Severity, a, b place) {
	if key := a.path + " " + b.path; a.path != b.path && !m.seen[key] {
		m.seen[key] = true
		m.findings = append(m.findings, meeting(severity, a, b))
	}
}

func meeting(severity Severity, a, b place) Finding {
	account := b.to
	if !account.exact() && a.to.exact() {
		account = a.to
	}
	return Finding{
		Severity: severity, Path: b.path + ".mapTo",
		Message: fmt.Sprintf("it can lead to the same ServiceAccount of the hub as %s of cluster %s: %s", a.path, a.cluster, account),
		Fix:     "use another namespace or name unless both should be one",
	}
}
