package tokenauthorizer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/metric"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// engine turns configurations into what requests go through.
type engine struct {
	config     Config
	store      *jwks.Store
	minter     *mint.Minter
	authorizer *authorizer.Authorizer
	reloads    *reloads
	// verifier remembers tokens across configurations.
	verifier *subject.Verifier
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

// entry is the result of a cluster's entry in the configuration, and stays as long as
// its origin does not change.
type entry struct {
	of       origin
	tokens   *subject.Rules
	cluster  *authorizer.Cluster
	reviewer *review.Reviewer
}

// origin is all that decides about a cluster's tokens besides its keys.
type origin struct {
	issuer string
	spec   policy.Spec
	// denied is set if the rules cannot be used.
	denied bool
	tokens subject.Rules
	review review.Settings
}

func originOf(c *config.Cluster) origin {
	out := origin{issuer: c.Keys.Issuer, spec: c.Spec, denied: c.Policy == nil, tokens: c.Token, review: c.Review}
	out.spec.Path = "" // Where it stands in the file changes no rule.
	return out
}

func newEngine(c Config, store *jwks.Store, minter *mint.Minter, chain *authorizer.Authorizer) (*engine, error) {
	counted, err := newReloads(c.Metrics)
	e := &engine{
		config: c, store: store, minter: minter, authorizer: chain, reloads: counted, entries: map[string]*entry{},
		verifier: subject.NewVerifier(nil, nil, c.Clock), // It gets keys with the first configuration.
	}
	return e, errors.Join(err, e.remembered("hit", func(hits, _ uint64) uint64 { return hits }),
		e.remembered("miss", func(_, misses uint64) uint64 { return misses }))
}

// remembered registers a metric of the tokens that are remembered as verified.
func (e *engine) remembered(event string, of func(hits, misses uint64) uint64) error {
	_, err := metric.Register(e.config.Metrics, prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: metric.Prefix + "verify_cache", Help: "Whether a subject token was known as verified.",
		ConstLabels: prometheus.Labels{"event": event},
	}, func() float64 { return float64(of(e.verifier.Counts())) }))
	return err
}

// errNothing says that no configuration has been read yet.
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
	log, now := e.config.Log, e.config.Clock.Now()
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
			e.config.Warn(warning)
		}
	}
	e.current, e.at = c, now
	log.Info("Loaded the configuration", "clusters", len(c.Clusters))
}

// apply makes c the configuration of all requests.
func (e *engine) apply(c *config.Config) error {
	entries, err := e.prepare(c)
	if err != nil {
		return err
	}
	rules := make(map[string]*subject.Rules, len(entries))
	clusters := make(map[string]*authorizer.Cluster, len(entries))
	settings := c.Exchange(0)
	for name, made := range entries {
		rules[name], clusters[name] = made.tokens, made.cluster
		limits := settings.Clusters[name]
		limits.Generation = made.cluster.Generation
		settings.Clusters[name] = limits
	}
	publish := func(keys *jwks.View) { e.authorizer.Swap(snapshot(e.verifier, keys, rules, clusters)) }
	if err := e.store.Configure(e.keys(c), publish); err != nil {
		return err
	}
	e.entries = entries
	// Afterwards, so that tokens minted under the rules before go as well.
	e.minter.Configure(settings)
	return nil
}

// snapshot returns the Snapshot for requests under keys and rules.
func snapshot(
	verifier *subject.Verifier, keys *jwks.View, rules map[string]*subject.Rules, clusters map[string]*authorizer.Cluster,
) authorizer.Snapshot {
	return authorizer.Snapshot{
		Verifier: verifier.With(keys, func(cluster string) *subject.Rules {
			if own, ok := rules[cluster]; ok {
				return own
			}
			return rules[policy.AnyCluster]
		}),
		Clusters:   clusters,
		Generation: keys.Generation,
	}
}

// keys returns the key sources of all clusters.
func (e *engine) keys(c *config.Config) []jwks.Cluster {
	if e.config.Source.FromHub {
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
		made, err := e.entry(e.entries[cluster.Name()], cluster)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", cluster.Name(), err)
		}
		entries[cluster.Name()] = made
	}
	return entries, nil
}

// entry makes the entry of a cluster; before is the last one, nil if there was none.
func (e *engine) entry(before *entry, from *config.Cluster) (*entry, error) {
	of := originOf(from)
	if before == nil {
		before = &entry{cluster: &authorizer.Cluster{}}
	} else if reflect.DeepEqual(before.of, of) {
		return before, nil
	}
	made := &entry{of: of, tokens: &from.Token, cluster: &authorizer.Cluster{Rules: from.Policy, Generation: before.cluster.Generation}}
	if before.of.issuer != of.issuer || !reflect.DeepEqual(before.of.spec, of.spec) {
		e.generations++
		made.cluster.Generation = e.generations
	}
	switch {
	case of.review.Mode == "" || of.review.Mode == review.Never:
		return made, nil
	case before.reviewer != nil && reflect.DeepEqual(before.of.review, of.review):
		made.reviewer = before.reviewer
	default:
		var err error
		if made.reviewer, err = review.New(of.review, e.config.Clock); err != nil {
			return nil, err
		}
	}
	made.cluster.Reviewer = made.reviewer
	return made, nil
}

// review makes TokenReviews of one cluster what requests go through: the older
// way of tokensmith, whose identities become those of the same name on the hub.
func (e *engine) review(source Source) error {
	verifier, err := review.NewTokenReview(source.Workload)
	if err != nil {
		return err
	}
	spec := policy.Spec{
		Cluster: review.WorkloadCluster, Open: true, Self: source.Options.Self,
		Allow: []v1alpha1.Rule{policy.OpenRule()}, Expiration: source.Options.Expiration,
	}
	rules, _ := policy.Compile(spec)
	if rules == nil {
		return errors.New("the rules of the workload cluster cannot be used")
	}
	e.authorizer.Swap(authorizer.Snapshot{
		Verifier: verifier,
		Clusters: map[string]*authorizer.Cluster{review.WorkloadCluster: {Rules: rules, Generation: 1}},
	})
	e.minter.Configure(mint.Settings{
		Clusters: map[string]mint.ClusterSettings{review.WorkloadCluster: {Generation: 1}},
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current, e.at = &config.Config{Open: true}, e.config.Clock.Now()
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
