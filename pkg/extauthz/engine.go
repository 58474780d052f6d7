package extauthz

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/exchange"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/internal/metric"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/subject"
)

// engine turns configurations into what requests go through.
type engine struct {
	role    *role
	reloads *reloads
	// settled is set once the role was ready.
	settled atomic.Bool

	mu sync.Mutex
	// current is the configuration in force, nil before the first; problem is
	// why a later one is not.
	current *config.Config
	at      time.Time
	problem error
	entries map[string]*entry
	// generations counts rules that changed.
	generations uint64
}

// entry is what a cluster's entry was made into, kept while it does not change.
type entry struct {
	keys       jwks.Cluster
	spec       policy.Spec
	generation uint64
	settings   review.Settings
	reviewer   *review.Reviewer
}

func newEngine(r *role) (*engine, error) {
	counted, err := newReloads(r.config.Metrics)
	return &engine{role: r, reloads: counted, entries: map[string]*entry{}}, err
}

// errNothing says that no configuration has come in yet.
var errNothing = errors.New("waiting for the first configuration")

// loaded returns nil once a configuration is in force.
func (e *engine) loaded() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.current != nil:
		return nil
	case e.problem != nil:
		return e.problem
	}
	return errNothing
}

// changed takes over a configuration that came in, or says why not.
func (e *engine) changed(c *config.Config, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	log, now := e.role.config.Log, e.role.config.Clock.Now()
	if err == nil {
		err = e.apply(c)
	}
	e.reloads.count(err, now)
	e.problem = err
	if err != nil {
		log.Error(err, "Keeping the configuration that was loaded before", "loaded", e.current != nil)
		return
	}
	for _, warning := range c.Warnings {
		if e.current == nil || !slices.Contains(e.current.Warnings, warning) {
			e.role.config.Warn(warning)
		}
	}
	e.current, e.at = c, now
	log.Info("Loaded the configuration", "clusters", len(c.Clusters))
}

// apply makes c the configuration of all requests that begin from now on.
func (e *engine) apply(c *config.Config) error {
	entries, err := e.prepare(c)
	if err != nil {
		return err
	}
	if err := e.role.store.Configure(e.keys(c)); err != nil {
		return err
	}
	e.entries = entries
	settings := c.Exchange(0)
	e.role.authorizer.Swap(snapshot(c, e.role.store, e.role.config.Clock, func(from *config.Cluster) authorizer.Cluster {
		made := entries[from.Name()]
		cluster := authorizer.Cluster{Rules: from.Policy, Generation: made.generation}
		if made.reviewer != nil { // A nil *Reviewer in the interface would not be nil.
			cluster.Reviewer = made.reviewer
		}
		limits := settings.Clusters[from.Name()]
		limits.Generation = made.generation
		settings.Clusters[from.Name()] = limits
		return cluster
	}))
	// Afterwards, so that tokens minted under the rules before go as well.
	e.role.exchanger.Configure(settings)
	return nil
}

// snapshot is what requests go through under a configuration.
func snapshot(c *config.Config, keys subject.Keys, clock clock.PassiveClock, made func(*config.Cluster) authorizer.Cluster) authorizer.Snapshot {
	rules := make(map[string]*subject.Rules, len(c.Clusters))
	clusters := make(map[string]authorizer.Cluster, len(c.Clusters))
	for i := range c.Clusters {
		from := &c.Clusters[i]
		rules[from.Name()], clusters[from.Name()] = &from.Token, made(from)
	}
	return authorizer.Snapshot{
		Verifier: subject.NewVerifier(keys, func(cluster string) *subject.Rules {
			if own, ok := rules[cluster]; ok {
				return own
			}
			return rules[policy.AnyCluster]
		}, clock),
		Clusters: clusters,
	}
}

// keys are where the keys of all clusters come from.
func (e *engine) keys(c *config.Config) []jwks.Cluster {
	if e.role.config.Source.FromHub {
		return withEveryone(c.Keys())
	}
	return c.Keys()
}

// withEveryone adds every cluster that publishes keys on the hub, so that one without
// rules is distinguished from one that is not known.
func withEveryone(keys []jwks.Cluster) []jwks.Cluster {
	for i := range keys {
		if keys[i].Name == jwks.Everyone {
			return keys
		}
	}
	return append(keys, jwks.Cluster{Name: jwks.Everyone, Source: jwks.Source{Hub: true}})
}

// prepare makes an entry of each cluster, with what has not changed from the
// last ones. It changes nothing.
func (e *engine) prepare(c *config.Config) (map[string]*entry, error) {
	entries := make(map[string]*entry, len(c.Clusters))
	for i := range c.Clusters {
		cluster := &c.Clusters[i]
		made := &entry{keys: jwks.Cluster{Issuer: cluster.Keys.Issuer}, spec: cluster.Spec, settings: cluster.Review}
		made.spec.Path = "" // Where it stands in the file changes no rule.
		before := e.entries[cluster.Name()]
		if before != nil && reflect.DeepEqual(before.keys, made.keys) && reflect.DeepEqual(before.spec, made.spec) {
			made.generation = before.generation
		} else {
			e.generations++
			made.generation = e.generations
		}
		switch {
		case cluster.Review.Mode == "" || cluster.Review.Mode == review.Never:
		case before != nil && reflect.DeepEqual(before.settings, made.settings):
			made.reviewer = before.reviewer
		default:
			reviewer, err := review.New(cluster.Review, e.role.config.Clock)
			if err != nil {
				return nil, fmt.Errorf("cluster %s: %w", cluster.Name(), err)
			}
			made.reviewer = reviewer
		}
		entries[cluster.Name()] = made
	}
	return entries, nil
}

// review makes TokenReviews of one cluster what requests go through: the older
// way of tokensmith, whose identities become those of the same name on the hub.
func (e *engine) review(source Source) error {
	verifier, err := review.NewTokenReview(source.Workload)
	if err != nil {
		return err
	}
	expiration := source.Options.Expiration
	if expiration == 0 {
		expiration = policy.DefaultExpiration
	}
	spec := policy.Spec{
		Cluster: review.WorkloadCluster, Seed: true, Self: source.Options.Self,
		Allow: []policy.Rule{policy.SeedRule(expiration)},
	}
	rules, _ := policy.Compile(spec)
	if rules == nil {
		return errors.New("the rules of the workload cluster cannot be used")
	}
	e.role.authorizer.Swap(authorizer.Snapshot{
		Verifier: verifier,
		Clusters: map[string]authorizer.Cluster{review.WorkloadCluster: {Rules: rules, Generation: 1}},
	})
	e.role.exchanger.Configure(exchange.Settings{
		Clusters: map[string]exchange.ClusterSettings{review.WorkloadCluster: {Generation: 1}},
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current, e.at = &config.Config{Open: true}, e.role.config.Clock.Now()
	e.reloads.count(nil, e.at)
	return nil
}

// reloads are the metrics of configurations.
type reloads struct {
	successful, at prometheus.Gauge
}

func newReloads(registerer prometheus.Registerer) (*reloads, error) {
	successful, err1 := metric.Register(registerer, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: metric.Prefix + "config_last_reload_successful", Help: "Whether the last configuration that was read is in force.",
	}))
	at, err2 := metric.Register(registerer, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: metric.Prefix + "config_last_reload_success_timestamp_seconds", Help: "When the configuration in force was taken over.",
	}))
	return &reloads{successful: successful, at: at}, errors.Join(err1, err2)
}

func (r *reloads) count(err error, now time.Time) {
	if err != nil {
		r.successful.Set(0)
		return
	}
	r.successful.Set(1)
	r.at.Set(float64(now.UnixMilli()) / 1000)
}
