package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
)

// warn adds a finding that keeps nobody from loading the file.
func (n node) warn(fix, format string, args ...any) {
	n.r.findings = append(n.r.findings, policy.Finding{
		Severity: policy.Warning, Path: n.path, Line: n.r.line(n.path), Message: fmt.Sprintf(format, args...), Fix: fix,
	})
}

// checkClusters checks the clusters against each other (seed 002,
// "Configuration Structures").
func (p *parser) checkClusters() {
	if len(p.out.Clusters) == 0 && !p.opts.Hub {
		p.fail("clusters", "add one with a name, an issuer and keys", "at least one cluster must be configured")
	}
	first := map[string]string{}
	for i := range p.out.Clusters {
		c := &p.out.Clusters[i]
		if other, twice := first[c.Name()]; twice && c.Name() != "" {
			p.fail(c.Spec.Path+".name", "give each cluster a name of its own", "%s is called %q too", other, c.Name())
			continue
		}
		first[c.Name()] = c.Spec.Path
	}
	p.sharedKeys()
	p.hubKeys()
	if p.out.Seed {
		p.seedForm()
	}
}

// sharedKeys finds one key under one issuer for two clusters: nobody could tell
// whose token it is. One issuer with different keys is fine.
func (p *parser) sharedKeys() {
	type key struct{ issuer, thumbprint string }
	owner := map[key]int{}
	for i, set := range p.sets {
		for _, k := range set.Keys {
			at := key{p.out.Clusters[i].Keys.Issuer, k.Thumbprint}
			j, taken := owner[at]
			if taken && j != i {
				p.fail(p.out.Clusters[i].Spec.Path, "give each cluster a signing key of its own, or remove one of the two",
					"clusters %q and %q have the same key %s (thumbprint %s) for issuer %q, so a token of one is a token of the other",
					p.out.Clusters[j].Name(), p.out.Clusters[i].Name(), k.ID, k.Thumbprint, at.issuer)
				continue
			}
			owner[at] = i
		}
	}
}

// hubKeys is about keys that nobody will bring.
func (p *parser) hubKeys() {
	if p.opts.Hub {
		return
	}
	var from []string
	for i := range p.out.Clusters {
		if p.out.Clusters[i].Keys.Source.Hub {
			from = append(from, strconv.Quote(p.out.Clusters[i].Name()))
		}
	}
	const shown = 3
	switch {
	case len(from) == 0:
		return
	case len(from) > shown:
		from = append(from[:shown], fmt.Sprintf("%d more", len(from)-shown))
	}
	p.findings = append(p.findings, policy.Finding{
		Severity: policy.Warning, Path: "clusters", Line: p.line("clusters"),
		Message: "keys that clusters publish on the hub are read with --from-hub only, so nothing is known of " + strings.Join(from, ", "),
		Fix:     "put the configuration into the hub's ConfigMap, or name another source of keys",
	})
}

// seedForm is about a file without any policy.
func (p *parser) seedForm() {
	where := "the file"
	if p.opts.File != "" {
		where = p.opts.File
	}
	const closing = "write allow rules and audiences (kubectl ocm exchange allow), or have such files refused with --strict"
	clusters := "its cluster"
	if n := len(p.out.Clusters); n > 1 {
		clusters = fmt.Sprintf("its %d clusters", n)
	}
	open := fmt.Sprintf("%s has no policy: every ServiceAccount of %s becomes the one of the same namespace and name on this hub, whatever audience its token was made for",
		where, clusters)
	severity := policy.Warning
	if p.opts.Strict {
		severity = policy.Error
	}
	p.findings = append(p.findings, policy.Finding{Severity: severity, Message: open, Fix: closing})
}
