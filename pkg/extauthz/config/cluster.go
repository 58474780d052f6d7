package config

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/exchange"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// tokens are the demands on subject tokens, of a cluster or as defaults.
type tokens struct {
	audiences  []string
	maxAge     time.Duration
	skew       time.Duration
	requirePod bool
	limits     exchange.Limits
}

func (t *tokens) fields() fields {
	return fields{
		"audiences":       func(n node) { n.texts(&t.audiences); noEmpty(n, t.audiences) },
		"maxTokenAge":     func(n node) { n.duration(&t.maxAge); unlimited(n, t.maxAge) },
		"clockSkew":       func(n node) { n.duration(&t.skew); atMost(n, t.skew, maxSkew) },
		"requireBoundPod": func(n node) { n.boolean(&t.requirePod) },
		"limits":          func(n node) { readLimits(n, &t.limits) },
	}
}

// maxSkew is more than clocks differ that anybody looks after.
const maxSkew = 5 * time.Minute

func noEmpty(n node, values []string) {
	for _, v := range values {
		if strings.TrimSpace(v) == "" {
			n.fail("name the audiences that tokens are made for", "an empty audience means nothing")
		}
	}
}

func atMost(n node, d, most time.Duration) {
	if d > most {
		n.fail("mend the clocks instead", "%s is more than %s", d, most)
	}
}

func unlimited(n node, age time.Duration) {
	if age == 0 {
		n.warn("name a time, such as 1h", "tokens are taken at any age, those that every Pod has for a year")
	}
}

func readLimits(n node, into *exchange.Limits) {
	rate := func(into *exchange.Rate) func(node) {
		return func(n node) {
			n.object(fields{
				"perSecond": func(n node) { n.decimal(&into.PerSecond) },
				"burst":     func(n node) { n.number(&into.Burst) },
			})
			if into.PerSecond == 0 || into.Burst == 0 {
				n.fail("write it as {perSecond: 10, burst: 100}", "a limit has perSecond and burst, both greater than 0")
			}
		}
	}
	n.object(fields{"cluster": rate(&into.Cluster), "identity": rate(&into.Identity)})
}

// clusterReader reads one element of "clusters".
type clusterReader struct {
	opts     Options
	defaults tokens
	seed     bool
	out      Cluster
	own      tokens
	sources  []string
	set      jwk.Set
}

func (c *clusterReader) read(n node) {
	c.own = c.defaults
	known := c.own.fields()
	known["name"] = func(n node) { n.text(&c.out.Keys.Name) }
	known["issuer"] = func(n node) { n.text(&c.out.Keys.Issuer) }
	known["jwks_uri"] = func(n node) { c.source(n, "jwks_uri"); c.uri(n, &c.out.Keys.Source.URI) }
	known["jwks_data"] = func(n node) { c.source(n, "jwks_data"); c.out.Keys.Source.Inline = c.keySet(n) }
	known["keys"] = c.readKeys
	known["acceptLegacyTokens"] = func(n node) { n.boolean(&c.out.Token.Legacy) }
	known["review"] = c.readReview
	known["allow"] = func(n node) {
		n.list(func(_ int, child node) { c.out.Spec.Allow = append(c.out.Spec.Allow, c.readRule(child)) })
	}
	c.out.Spec.Path = n.path
	before := len(n.r.findings)
	n.object(known)
	c.checkName(n)
	c.checkKeys(n)
	c.checkPins(n)
	c.finish(n)
	// What is wrong in the file was said in the file's words; the store, which
	// has to take the keys, has the last one.
	if !policy.Failed(n.r.findings[before:]) {
		if err := c.out.Keys.Check(); err != nil {
			n.fail("", "%v", err)
		}
	}
}

func (c *clusterReader) checkName(n node) {
	name := c.out.Keys.Name
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case name == "":
		n.r.fail(n.path+".name", "give the cluster a name, the one of its ManagedCluster if it has one", "the name is missing")
	case len(name) > 253 || strings.ContainsFunc(name, odd):
		n.r.fail(n.path+".name", "use at most 253 printable characters", "%q cannot name a cluster", name)
	case name == policy.AnyCluster:
		c.checkEveryone(n)
	}
	c.out.Spec.Cluster = name
}

// checkEveryone refuses what cannot be the same for all clusters.
func (c *clusterReader) checkEveryone(n node) {
	keys := c.out.Keys
	if len(c.sources) > 0 && c.sources[0] != "ocm" || keys.Issuer != "" || len(keys.Pins) > 0 {
		n.fail("leave out issuer, keys and pins", `the entry "*" is for clusters that publish their own`)
	}
	if mode := c.out.Review.Mode; mode != "" && mode != review.Never {
		n.r.fail(n.path+".review", "give clusters with a review an entry of their own", `the entry "*" can have no review: each cluster has an API server of its own`)
	}
}

// finish fills in what follows from the rest.
func (c *clusterReader) finish(n node) {
	out, own := &c.out, c.own
	out.Limits = own.limits
	out.Token.MaxAge, out.Token.Skew, out.Token.RequirePod = own.maxAge, own.skew, own.requirePod
	out.Keys.Legacy = out.Token.Legacy // Whose issuer is another one.
	out.Spec.Self = c.opts.Self
	if c.seed {
		out.Token.Seed = true
		out.Token.MaxAge = 0
		out.Spec.Seed = true
		out.Spec.Allow = []policy.Rule{policy.SeedRule(c.opts.Expiration)}
	}
	for i := range out.Spec.Allow {
		if out.Spec.Allow[i].Target.Expiration == 0 {
			out.Spec.Allow[i].Target.Expiration = c.opts.Expiration
		}
	}
	c.audiences(n)
	out.Review.Audiences = out.Token.Audiences
	if err := out.Review.Validate(); err != nil {
		n.r.fail(n.path+".review", "", "%v", err)
	}
}

// audiences works out which tokens are taken: those for the cluster's audiences
// and those for the rules' own. A rule without any is for the cluster's; only
// where other rules take more, that must be said.
func (c *clusterReader) audiences(n node) {
	rules := c.out.Spec.Allow
	if !slices.Equal(c.own.audiences, c.defaults.audiences) { // Those are looked at once.
		c.out.Spec.Audiences = c.own.audiences
	}
	taken := slices.Clone(c.own.audiences)
	unsaid := false
	for _, r := range rules {
		taken = union(taken, r.Audiences)
		unsaid = unsaid || len(r.Audiences) == 0
	}
	for i := range rules {
		if len(rules[i].Audiences) == 0 && len(taken) > len(c.own.audiences) {
			rules[i].Audiences = c.own.audiences
		}
	}
	if unsaid && len(c.own.audiences) == 0 && !c.seed {
		n.r.fail(n.path+".audiences", "name the audience that workloads ask their tokens for, such as the address of this hub, here or in defaults",
			"no audience is named, so a token that was made for anybody would be taken")
	}
	c.out.Token.Audiences = taken
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

func (c *clusterReader) readReview(n node) {
	settings := &c.out.Review
	mode := func(n node) {
		var s string
		n.text(&s)
		settings.Mode = review.Mode(s)
	}
	if n.y.Kind == yaml.ScalarNode {
		mode(n)
		return
	}
	n.object(fields{
		"mode":           mode,
		"ttl":            func(n node) { n.duration(&settings.TTL) },
		"kubeconfigFile": func(n node) { c.file(n, &settings.KubeconfigFile) },
		"self":           func(n node) { n.boolean(&settings.Self) },
	})
}

func (c *clusterReader) readRule(n node) policy.Rule {
	var (
		r       policy.Rule
		seconds int
	)
	n.object(fields{
		"namespaces":      func(n node) { n.texts(&r.Namespaces) },
		"serviceAccounts": func(n node) { n.texts(&r.ServiceAccounts) },
		"audiences":       func(n node) { n.texts(&r.Audiences); noEmpty(n, r.Audiences) },
		"requireBoundPod": func(n node) { n.boolean(&r.RequirePod) },
		"mapTo":           func(n node) { r.MapTo = readMapping(n) },
		"target": func(n node) {
			n.object(fields{
				"namespaces":        func(n node) { n.texts(&r.Target.Namespaces) },
				"audiences":         func(n node) { n.texts(&r.Target.Audiences); noEmpty(n, r.Target.Audiences) },
				"expirationSeconds": func(n node) { n.number(&seconds) },
			})
		},
	})
	r.Target.Expiration = time.Duration(seconds) * time.Second
	return r
}

// readMapping reads "same" or {namespace, name}.
func readMapping(n node) policy.Mapping {
	var m policy.Mapping
	if n.y.Kind == yaml.ScalarNode {
		if m.Same = n.y.Value == "same"; !m.Same {
			n.fail("write mapTo: same, or mapTo: {namespace: ..., name: ...}", "%q is no mapping", n.y.Value)
		}
		return m
	}
	n.object(fields{
		"namespace": func(n node) { n.text(&m.Namespace) },
		"name":      func(n node) { n.text(&m.Name) },
	})
	return m
}

// file reads a path, which is relative to the file that names it.
func (c *clusterReader) file(n node, into *string) {
	n.text(into)
	if *into == "" {
		n.fail("name a file", "the path is empty")
		return
	}
	if !filepath.IsAbs(*into) {
		*into = filepath.Join(c.opts.Dir, *into)
	}
}
