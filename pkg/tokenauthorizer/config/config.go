package config

import (
	"slices"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// Options are the settings that are not part of a configuration.
type Options struct {
	// File is the name of the file, for messages.
	File string
	// Dir is the directory for relative paths. Load and Watch set it.
	Dir string
	// Strict refuses a file in tokensmith's form, which has no policy (--strict).
	Strict bool
	// Self is the authorizer's own ServiceAccount, which is no target.
	Self policy.Account
	// Expiration of issued tokens, for rules that say none
	// (--token-expiration); 0 is policy.DefaultExpiration.
	Expiration time.Duration
}

// Config is a configuration that can be used. It is immutable.
type Config struct {
	// Clusters in the order of the file, or of the namespaces of the hub.
	Clusters []Cluster
	// Open is set for a file in tokensmith's form: every ServiceAccount becomes the
	// one of the same name.
	Open bool
	// Warnings are sentences that an operator should see once.
	Warnings []string
	// Findings is all about the file, or about each object of the hub by itself. In
	// a file none is an error.
	Findings []policy.Finding
	// Defaults are the findings about the TokenExchangeDefaults, also in Findings.
	Defaults []policy.Finding
}

// Cluster is all about one cluster. Its name is Keys.Name; policy.AnyCluster is
// for every cluster that publishes its keys and has no entry of its own.
type Cluster struct {
	Keys   jwks.Cluster
	Token  subject.Rules
	Policy *policy.Rules
	Review review.Settings
	// Limits are zero where the defaults hold.
	Limits mint.Limits
	// Spec is the source of Policy.
	Spec policy.Spec
	// Findings are the findings about this cluster alone. With an error among them,
	// which only a hub has, Policy is nil and everything is denied.
	Findings []policy.Finding
	// Unkeyed is set when the configured keys cannot be used: the cluster has none.
	// Conflicting is set when that is because another cluster has them too.
	Unkeyed, Conflicting bool

	// targets are the target namespaces of Policy on the hub, as far as it names them.
	targets []string
}

// Name is the name of the cluster, or policy.AnyCluster.
func (c *Cluster) Name() string { return c.Keys.Name }

// Keys returns the key sources of all clusters.
func (c *Config) Keys() []jwks.Cluster {
	out := make([]jwks.Cluster, 0, len(c.Clusters))
	for i := range c.Clusters {
		if !c.Clusters[i].Unkeyed {
			out = append(out, c.Clusters[i].Keys)
		}
	}
	return out
}

// Specs returns the policies that are in force as they were written, for Lint
// and RBAC.
func (c *Config) Specs() []policy.Spec {
	out := make([]policy.Spec, 0, len(c.Clusters))
	for i := range c.Clusters {
		if c.Clusters[i].Policy != nil {
			out = append(out, c.Clusters[i].Spec)
		}
	}
	return out
}

// Lint is Findings, and what the clusters' policies open together.
func (c *Config) Lint() []policy.Finding {
	return append(slices.Clone(c.Findings), policy.LintTogether(c.Specs())...)
}

// Exchange returns the settings of the token exchange; generation is the generation of
// the rules of all clusters.
func (c *Config) Exchange(generation uint64) mint.Settings {
	out := mint.Settings{Clusters: map[string]mint.ClusterSettings{}}
	for i := range c.Clusters {
		if c.Clusters[i].Policy != nil {
			out.Namespaces = append(out.Namespaces, c.Clusters[i].targets...)
		}
		out.Clusters[c.Clusters[i].Name()] = mint.ClusterSettings{Generation: generation, Limits: c.Clusters[i].Limits}
	}
	slices.Sort(out.Namespaces)
	out.Namespaces = slices.Compact(out.Namespaces)
	return out
}

// Cluster returns the entry for a cluster: its own, or the one for all.
func (c *Config) Cluster(name string) (*Cluster, bool) {
	var everyone *Cluster
	for i := range c.Clusters {
		switch c.Clusters[i].Name() {
		case name:
			return &c.Clusters[i], true
		case policy.AnyCluster:
			everyone = &c.Clusters[i]
		}
	}
	return everyone, everyone != nil
}
