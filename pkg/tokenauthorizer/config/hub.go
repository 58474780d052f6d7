package config

import (
	"cmp"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
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
func FromHub(o Objects, opts Options) *Config { return (&Hub{Options: opts}).Config(o) }

// Hub makes configurations of the objects on a hub, one after the other. What it made of a
// policy it keeps until that or the defaults change: a policy of the largest size costs
// seconds, which must not be spent for each change of another one. It is not safe for
// concurrent use.
type Hub struct {
	Options Options

	// defaults is the version of the defaults that everything else was made with.
	defaults version
	builder  *builder
	everyone Cluster
	made     map[version]Cluster
}

// version is a version of an object. The zero version means no object.
type version struct {
	uid        types.UID
	generation int64
}

// Config is FromHub for objects that the API server sent.
func (h *Hub) Config(o Objects) *Config {
	spec := v1alpha1.TokenExchangeDefaultsSpec{}
	var defaults version
	if o.Defaults != nil {
		spec, defaults = o.Defaults.Spec, version{o.Defaults.UID, o.Defaults.Generation}
	}
	if h.builder == nil || defaults != h.defaults {
		h.defaults, h.builder, h.made = defaults, newBuilder(h.Options, spec.TokenRules, spec.Deny), nil
		h.everyone = h.builder.everyone(spec)
	}
	out := &Config{Defaults: h.everyone.Findings, Clusters: h.clusters(o.Policies)}
	out.separate()
	if o.Defaults != nil && (len(spec.Allow) > 0 || len(spec.Audiences) > 0) {
		out.Clusters = append(out.Clusters, h.everyone)
	}
	for i := range out.Clusters {
		out.Findings = append(out.Findings, out.Clusters[i].Findings...)
	}
	if !slices.ContainsFunc(out.Clusters, func(c Cluster) bool { return c.Name() == policy.AnyCluster }) {
		out.Findings = append(out.Findings, out.Defaults...)
	}
	return out
}

// clusters makes the entries of clusters that have a policy.
func (h *Hub) clusters(all []v1alpha1.TokenExchangePolicy) []Cluster {
	policies := slices.DeleteFunc(slices.Clone(all), func(p v1alpha1.TokenExchangePolicy) bool { return p.Name != v1alpha1.Name })
	slices.SortFunc(policies, func(x, y v1alpha1.TokenExchangePolicy) int { return cmp.Compare(x.Namespace, y.Namespace) })
	clusters, made := make([]Cluster, 0, len(policies)), make(map[version]Cluster, len(policies))
	for i := range policies {
		now := version{policies[i].UID, policies[i].Generation}
		entry, known := h.made[now]
		if !known {
			entry = h.builder.policy(&policies[i], h.everyone.Findings)
		}
		if now.uid != "" {
			made[now] = entry
		}
		clusters = append(clusters, entry)
	}
	h.made = made
	return clusters
}

// separate takes the keys away from clusters that have them in common.
func (c *Config) separate() {
	conflicts := jwks.Conflicts(c.Keys())
	for i := range c.Clusters {
		entry := &c.Clusters[i]
		if shared := conflicts[entry.Name()]; len(shared) > 0 {
			entry.Policy, entry.Unkeyed, entry.Conflicting = nil, true, true
			entry.Findings = append(slices.Clip(entry.Findings), conflict(entry, shared))
		}
	}
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

// policy is the entry of a cluster that has one. Defaults with errors make it deny all.
func (b *builder) policy(object *v1alpha1.TokenExchangePolicy, defaults []policy.Finding) Cluster {
	c := b.begin(object.Namespace, PolicyPath(object.Namespace))
	c.spec(&object.Spec)
	if policy.Failed(defaults) {
		c.find(policy.Error, "", "fix it: "+defaults[0].String(), "the TokenExchangeDefaults cannot be used, so nothing is allowed")
	}
	return c.finish()
}

// spec takes a policy over.
func (c *building) spec(spec *v1alpha1.TokenExchangePolicySpec) {
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
