package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// maxSkew is more than the clocks of maintained clusters differ.
const maxSkew = 5 * time.Minute

// builder makes usable clusters from what is written about them.
type builder struct {
	opts     Options
	defaults v1alpha1.TokenRules
	deny     []v1alpha1.Denial
}

// building is a cluster that is being made.
type building struct {
	*builder

	out      Cluster
	findings []policy.Finding
}

func newBuilder(opts Options, defaults v1alpha1.TokenRules, deny []v1alpha1.Denial) *builder {
	return &builder{opts: opts, defaults: defaults, deny: deny}
}

func (b *builder) begin(name, path string) *building {
	out := &building{builder: b}
	out.out.Keys.Name, out.out.Spec.Cluster, out.out.Spec.Path = name, name, path
	out.out.Spec.Self, out.out.Spec.Deny, out.out.Spec.Expiration = b.opts.Self, b.deny, b.opts.Expiration
	return out
}

func (c *building) find(severity policy.Severity, field, fix, format string, args ...any) {
	c.findings = append(c.findings, policy.Finding{
		Severity: severity, Path: c.at(field), Message: fmt.Sprintf(format, args...), Fix: fix,
	})
}

func (c *building) at(field string) string {
	if field == "" || c.out.Spec.Path == "" {
		return c.out.Spec.Path + field
	}
	return c.out.Spec.Path + "." + field
}

// duration reads a time span; what is left out is the first default that is
// written, and else the last one.
func (c *building) duration(field, written, inherited string, otherwise time.Duration) time.Duration {
	text := cmp.Or(written, inherited)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		c.find(policy.Error, field, "", "%q must be a duration such as 1h or 90s", text)
	}
	return d
}

// tokens takes over what is demanded of tokens.
func (c *building) tokens(own v1alpha1.TokenRules, legacy bool) {
	out, inherited := &c.out.Token, c.defaults
	out.MaxAge = c.duration("maxTokenAge", own.MaxTokenAge, inherited.MaxTokenAge, subject.DefaultMaxAge)
	out.Skew = c.duration("clockSkew", own.ClockSkew, inherited.ClockSkew, subject.DefaultSkew)
	if out.Skew > maxSkew {
		c.find(policy.Error, "clockSkew", "fix the clocks instead", "%s is more than %s", out.Skew, maxSkew)
	}
	if out.MaxAge == 0 && own.MaxTokenAge != "" {
		c.find(policy.Warning, "maxTokenAge", "name a time, such as 1h", "tokens are accepted at any age, those that every Pod has for a year")
	}
	if required := cmp.Or(own.RequireBoundPod, inherited.RequireBoundPod); required != nil {
		out.RequirePod = *required
	}
	out.Legacy, c.out.Keys.Legacy = legacy, legacy // Whose issuer is another one.
	if limits := cmp.Or(own.Limits, inherited.Limits); limits != nil {
		c.out.Limits = mint.Limits{Cluster: c.rate("cluster", limits.Cluster), Identity: c.rate("identity", limits.Identity)}
	}
	c.blank("audiences", own.Audiences)
}

func (c *building) rate(field string, r *v1alpha1.Rate) mint.Rate {
	if r == nil {
		return mint.Rate{}
	}
	if r.PerSecond <= 0 || r.Burst <= 0 {
		c.find(policy.Error, "limits."+field, "write it as {perSecond: 10, burst: 100}", "a limit has perSecond and burst, both greater than 0")
	}
	return mint.Rate{PerSecond: float64(r.PerSecond), Burst: int(r.Burst)}
}

// blank refuses audiences that say nothing.
func (c *building) blank(field string, audiences []string) {
	if slices.ContainsFunc(audiences, func(a string) bool { return strings.TrimSpace(a) == "" }) {
		c.find(policy.Error, field, "name the audiences that tokens are issued for", "an empty audience means nothing")
	}
}

// rules takes over the rules, with the audiences that follow from them.
func (c *building) rules(allow []v1alpha1.Rule, own v1alpha1.TokenRules) {
	spec := &c.out.Spec
	spec.Allow = slices.Clone(allow) // Whose audiences are completed.
	for i := range allow {
		field := fmt.Sprintf("allow[%d]", i)
		c.blank(field+".audiences", allow[i].Audiences)
		if target := allow[i].Target; target != nil {
			c.blank(field+".target.audiences", target.Audiences)
		}
	}
	spec.Audiences = own.Audiences // The defaults' are looked at once.
	c.audiences(own)
}

// audiences works out which tokens are accepted: those for the cluster's
// audiences and those for the rules' own. A rule without any is for the
// cluster's; only where other rules accept more, that must be said.
func (c *building) audiences(own v1alpha1.TokenRules) {
	demanded := own.Audiences
	if len(demanded) == 0 {
		demanded = c.defaults.Audiences
	}
	rules := c.out.Spec.Allow
	accepted, unsaid := slices.Clone(demanded), false
	for _, r := range rules {
		accepted = union(accepted, r.Audiences)
		unsaid = unsaid || len(r.Audiences) == 0
	}
	for i := range rules {
		if len(rules[i].Audiences) == 0 && len(accepted) > len(demanded) {
			rules[i].Audiences = demanded
		}
	}
	if unsaid && len(demanded) == 0 {
		c.find(policy.Error, "audiences", "name the audience that workloads request their tokens for, such as the address of this hub, here or in the defaults",
			"no audience is named, so a token that was issued for any service would be accepted")
	}
	c.out.Token.Audiences, c.out.Review.Audiences = accepted, accepted
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// fetched takes over the keys that both forms have.
func (c *building) fetched(k *v1alpha1.Keys) {
	out := &c.out.Keys
	out.Source.URI, out.Pins = k.JWKSURI, k.Pins
	if k.CA != "" {
		out.Source.CA = []byte(k.CA)
	}
	if k.Discovery != nil {
		out.Source.Discovery = &jwks.Discovery{URL: k.Discovery.URL}
	}
	out.StaleFor = c.duration("keys.staleFor", k.StaleFor, "", 0)
	if slices.Contains(k.Pins, "") {
		c.find(policy.Error, "keys.pins", "name keys by kid or thumbprint", "an empty pin names no key")
	}
}

// checkKeys has the store, which has to take the keys, check them.
func (c *building) checkKeys() bool {
	if err := c.out.Keys.Check(); err != nil {
		c.find(policy.Error, "keys", "", "%v", err)
		return false
	}
	return true
}

// finish compiles the rules and adds what lint says of them.
func (c *building) finish() Cluster {
	if err := c.out.Review.Validate(); err != nil {
		c.find(policy.Error, "review", "", "%v", err)
	}
	c.findings = append(c.findings, policy.LintOne(c.out.Spec)...)
	if !policy.Failed(c.findings) {
		c.out.Policy, _ = policy.Compile(c.out.Spec)
		c.out.targets = policy.Namespaces([]policy.Spec{c.out.Spec})
	}
	c.out.Findings = c.findings
	return c.out
}
