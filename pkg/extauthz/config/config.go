package config

import (
	"slices"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/exchange"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/subject"
)

// Options are what a file does not say.
type Options struct {
	// File is the name of the file or ConfigMap, for messages.
	File string
	// Dir is what paths are relative to. Load and Watch set it.
	Dir string
	// Hub is set where the keys that clusters publish on the hub are the rule
	// (--from-hub): an entry needs no keys, and data without any cluster is fine.
	Hub bool
	// Strict refuses a file without a policy (--strict).
	Strict bool
	// Self is the authorizer's own ServiceAccount, which is no target.
	Self policy.Account
	// Expiration of issued tokens, for rules that say none
	// (--token-expiration); 0 is policy.DefaultExpiration.
	Expiration time.Duration
}

// Config is a configuration that can be used. It is immutable.
type Config struct {
	// Clusters in the order of the file.
	Clusters []Cluster
	// Seed is set for a file without any policy (seed 002's form).
	Seed bool
	// Warnings are sentences that an operator should see once.
	Warnings []string
	// Findings is all about each cluster by itself that is no error.
	Findings []policy.Finding

	at *reader
}

// Cluster is all about one cluster. Its name is Keys.Name; policy.AnyCluster is
// for every cluster that publishes its keys and has no entry of its own.
type Cluster struct {
	Keys   jwks.Cluster
	Token  subject.Rules
	Policy *policy.Rules
	Review review.Settings
	// Limits are zero where the defaults hold.
	Limits exchange.Limits
	// Spec is what Policy was compiled from.
	Spec policy.Spec
}

// Name is the name of the cluster, or policy.AnyCluster.
func (c *Cluster) Name() string { return c.Keys.Name }

// Keys returns where the keys of all clusters come from.
func (c *Config) Keys() []jwks.Cluster {
	out := make([]jwks.Cluster, len(c.Clusters))
	for i := range c.Clusters {
		out[i] = c.Clusters[i].Keys
	}
	return out
}

// Specs returns the policies as they were written, for Lint and RBAC.
func (c *Config) Specs() []policy.Spec {
	out := make([]policy.Spec, len(c.Clusters))
	for i := range c.Clusters {
		out[i] = c.Clusters[i].Spec
	}
	return out
}

// Lint is Findings, and what the clusters' policies open together.
func (c *Config) Lint() []policy.Finding {
	out := slices.Clone(c.Findings)
	for _, f := range policy.LintTogether(c.Specs()) {
		f.Line = c.at.line(f.Path)
		out = append(out, f)
	}
	return out
}

// Exchange returns what the exchange of tokens must know; generation is that of
// the rules of all clusters.
func (c *Config) Exchange(generation uint64) exchange.Settings {
	out := exchange.Settings{Namespaces: policy.Namespaces(c.Specs()), Clusters: map[string]exchange.ClusterSettings{}}
	for i := range c.Clusters {
		out.Clusters[c.Clusters[i].Name()] = exchange.ClusterSettings{Generation: generation, Limits: c.Clusters[i].Limits}
	}
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
