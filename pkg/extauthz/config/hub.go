package config

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// Objects are the rules on a hub.
type Objects struct {
	Policies []v1alpha1.TokenExchangePolicy
	// Defaults is nil if there are none.
	Defaults *v1alpha1.TokenExchangeDefaults
}

// FromHub makes a configuration of the objects on a hub. One that cannot be used
// denies everything to its cluster and is no matter of any other's; its Findings
// say what is wrong. Defaults that cannot be used may deny something, so nothing
// is allowed.
func FromHub(o Objects, opts Options) *Config {
	out := &Config{}
	spec := v1alpha1.TokenExchangeDefaultsSpec{}
	if o.Defaults != nil {
		spec = o.Defaults.Spec
	}
	b := newBuilder(opts, spec.TokenRules, spec.Deny)
	everyone := b.everyone(spec)
	out.Defaults = everyone.Findings
	broken := policy.Failed(out.Defaults)
	policies := slices.DeleteFunc(slices.Clone(o.Policies), func(p v1alpha1.TokenExchangePolicy) bool { return p.Name != v1alpha1.Name })
	slices.SortFunc(policies, func(x, y v1alpha1.TokenExchangePolicy) int { return cmp.Compare(x.Namespace, y.Namespace) })
	for i := range policies {
		c := b.begin(policies[i].Namespace, PolicyPath(policies[i].Namespace))
		c.policy(&policies[i].Spec)
		if broken {
			c.find(policy.Error, "", "fix it: "+everyone.Findings[0].String(), "the TokenExchangeDefaults cannot be used, so nothing is allowed")
		}
		out.Clusters = append(out.Clusters, c.finish())
	}
	conflicts := jwks.Conflicts(out.Keys())
	for i := range out.Clusters {
		c := &out.Clusters[i]
		if shared := conflicts[c.Name()]; len(shared) > 0 {
			c.Policy, c.Unkeyed, c.Conflicting = nil, true, true
			c.Findings = append(c.Findings, conflict(c, shared))
		}
	}
	if o.Defaults != nil && (len(spec.Allow) > 0 || len(spec.Audiences) > 0) {
		out.Clusters = append(out.Clusters, everyone)
	}
	for i := range out.Clusters {
		out.Findings = append(out.Findings, out.Clusters[i].Findings...)
	}
	if !slices.ContainsFunc(out.Clusters, func(c Cluster) bool { return c.Name() == policy.AnyCluster }) {
		out.Findings = append(out.Findings, out.Defaults...)
	}
	return out
}

// PolicyPath names the policy of a cluster in findings.
func PolicyPath(cluster string) string {
	return "tokenexchangepolicy " + cluster + "/" + v1alpha1.Name + ": spec"
}

// DefaultsPath names the defaults in findings.
const DefaultsPath = "tokenexchangedefaults " + v1alpha1.Name + ": spec"

// everyone is the entry of the clusters that have no policy.
func (b *builder) everyone(spec v1alpha1.TokenExchangeDefaultsSpec) Cluster {
	c := b.begin(policy.AnyCluster, DefaultsPath)
	c.out.Keys.Source.Hub = true
	c.tokens(spec.TokenRules, false)
	c.rules(spec.Allow, spec.TokenRules)
	for _, f := range policy.CheckDeny("deny", b.deny) {
		f.Path = c.at(f.Path)
		c.findings = append(c.findings, f)
	}
	made := c.finish()
	if len(spec.Allow) == 0 { // That there are none needs no note.
		made.Findings = slices.DeleteFunc(made.Findings, func(f policy.Finding) bool { return f.Severity == policy.Info })
	}
	return made
}

// policy takes a policy over.
func (c *building) policy(spec *v1alpha1.TokenExchangePolicySpec) {
	c.tokens(spec.TokenRules, spec.AcceptLegacyTokens)
	c.out.Spec.Bound = spec.TargetNamespaces
	c.rules(spec.Allow, spec.TokenRules)
	c.out.Keys.Issuer = spec.Issuer
	c.out.Keys.Source.Hub = spec.Keys == nil
	if spec.Keys != nil {
		c.fetched(spec.Keys)
		c.out.Unkeyed = !c.stored(spec.Keys.JWKS)
	}
	c.out.Unkeyed = c.out.Unkeyed || !c.checkKeys()
}

// stored takes over a key set that is in the policy itself, and reports whether it
// can be used.
func (c *building) stored(set *v1alpha1.KeySet) bool {
	if set == nil {
		return true
	}
	data, err := json.Marshal(set)
	if err == nil {
		_, err = jwk.Parse(data)
	}
	if err != nil {
		c.find(policy.Error, "keys.jwks", "paste what the cluster serves: kubectl get --raw /openid/v1/jwks", "the key set cannot be used: %v", err)
		return false
	}
	c.out.Keys.Source.Inline = data
	return true
}
