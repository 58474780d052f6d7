package policy

import "slices"

// reach is where a rule can lead: patterns of a namespace and a name of the
// hub, that belong together.
type reach struct {
	namespace, name string
}

// exact reports whether there is only one such account.
func (r reach) exact() bool { return !wild(r.namespace) && !wild(r.name) }

func (r reach) overlaps(other reach) bool {
	return overlap(r.namespace, other.namespace) && overlap(r.name, other.name)
}

func (r reach) String() string { return r.namespace + "/" + r.name }

// maxReach bounds how many accounts a rule is spelled out into.
const maxReach = 4096

// reaches returns where a rule can lead for a cluster, which is a pattern too.
// What the deny list takes away is still in it.
func (c *rule) reaches(cluster string) []reach {
	namespaces, accounts := c.namespaces.patterns(), c.accounts.patterns()
	if !c.namespace.uses(namespaceVar) && !c.account.uses(namespaceVar) || len(namespaces)*len(accounts) > maxReach {
		namespaces = []string{everything}
	}
	if !c.namespace.uses(nameVar) && !c.account.uses(nameVar) || len(namespaces)*len(accounts) > maxReach {
		accounts = []string{everything}
	}
	out := make([]reach, 0, len(namespaces)*len(accounts))
	for _, namespace := range namespaces {
		for _, account := range accounts {
			from := source{cluster: cluster, namespace: namespace, name: account}
			out = append(out, reach{c.namespace.render(from), c.account.render(from)})
		}
	}
	return out
}

// Namespaces returns the namespaces of the hub that the policies name for their
// targets, as far as they are known beforehand, sorted.
func Namespaces(specs []Spec) []string {
	var out []string
	for _, s := range specs {
		rules, _ := Compile(s)
		if rules == nil {
			continue
		}
		for i := range rules.rules {
			for _, to := range rules.rules[i].reaches(s.Cluster) {
				if !wild(to.namespace) && !rules.shut(to) {
					out = append(out, to.namespace)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
