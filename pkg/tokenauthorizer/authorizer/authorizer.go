package authorizer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// Config is the configuration of an Authorizer.
type Config struct {
	// Minter outlives every Snapshot, so that a new configuration keeps the
	// tokens whose rules did not change.
	Minter Minter
	// Auditor may be nil.
	Auditor Auditor
	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
	// Metrics may be nil.
	Metrics prometheus.Registerer
}

// Authorizer decides requests. Its methods may be called from any goroutine.
type Authorizer struct {
	config  Config
	metrics *metrics
	current atomic.Pointer[Snapshot]
}

// New returns an Authorizer that refuses everything with keys_unavailable until
// its first Swap.
func New(c Config) (*Authorizer, error) {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	m, err := newMetrics(c.Metrics)
	if err != nil {
		return nil, err
	}
	return &Authorizer{config: c, metrics: m}, nil
}

// Swap makes s the configuration of all requests that begin from now on. Requests
// that have begun are decided again if s changes something about their cluster, so
// that nothing is allowed after Swap by keys or rules that are gone.
func (a *Authorizer) Swap(s Snapshot) { a.current.Store(&s) }

// maxDecisions is how often a request is decided whose cluster keeps changing.
const maxDecisions = 4

// Authorize takes a request through the chain. Its error has a denial.Error in
// its chain; the Decision returned with it has what was found until then, and never a
// token.
func (a *Authorizer) Authorize(ctx context.Context, r Request) (Decision, error) {
	start := a.config.Clock.Now()
	current, d, err := a.settle(ctx, r)
	if err != nil {
		err = asDenial(ctx, err)
		d.Token = mint.Token{}
	}
	took := a.config.Clock.Since(start)
	a.metrics.observe(current, d, err, took)
	if a.config.Auditor != nil {
		a.config.Auditor.Record(Event{Time: start, Took: took, Origin: r.Origin, Decision: d, Err: err})
	}
	return d, err
}

// settle decides a request under one Snapshot that is still current for its cluster
// when the decision is made. If a stage uses data of a later Snapshot, such as a key
// that it had to look up, that data belongs to the same keys and rules of the same
// cluster.
func (a *Authorizer) settle(ctx context.Context, r Request) (*Snapshot, Decision, error) {
	current := a.current.Load()
	for range maxDecisions {
		d, err := a.decide(ctx, current, r, nil)
		latest := a.current.Load()
		if current.agrees(latest, d.Identity.Cluster) {
			return current, d, err
		}
		current = latest
	}
	refused := denial.New(denial.KeysUnavailable, "the keys or the rules of the cluster changed %d times while the request was decided", maxDecisions)
	refused.RetryAfter = time.Second
	return current, Decision{}, refused
}

// Trace receives the steps of a request, for explanations.
type Trace interface {
	// Checked receives each check of the token.
	Checked(step subject.Step)
	// Considered receives each rule that was tried.
	Considered(rule policy.Considered)
	// Granted receives what the rules give.
	Granted(grant policy.Grant)
}

// Explain takes a request through the chain as Authorize does and informs trace
// about it. Nothing is remembered or audited.
func (a *Authorizer) Explain(ctx context.Context, r Request, trace Trace) (Decision, error) {
	d, err := a.decide(ctx, a.current.Load(), r, trace)
	if err != nil {
		err = asDenial(ctx, err)
		d.Token = mint.Token{}
	}
	return d, err
}

// explainer is a Verifier that can report its checks, and considerer a Decider that
// can report its rules.
type (
	explainer interface {
		Explain(ctx context.Context, token string, step func(subject.Step)) (subject.Identity, error)
	}
	considerer interface {
		Consider(id subject.Identity) []policy.Considered
	}
)

func verify(ctx context.Context, v Verifier, token string, trace Trace) (subject.Identity, error) {
	if e, ok := v.(explainer); ok && trace != nil {
		return e.Explain(ctx, token, trace.Checked)
	}
	return v.Verify(ctx, token)
}

func rule(rules Decider, id subject.Identity, trace Trace) (policy.Grant, error) {
	if c, ok := rules.(considerer); ok && trace != nil {
		for _, considered := range c.Consider(id) {
			trace.Considered(considered)
		}
	}
	grant, err := rules.Decide(id)
	if err == nil && trace != nil {
		trace.Granted(grant)
	}
	return grant, err
}

func (a *Authorizer) decide(ctx context.Context, current *Snapshot, r Request, trace Trace) (Decision, error) {
	var d Decision
	switch {
	case r.Token == "":
		return d, denial.New(denial.MissingToken, "the request carries no bearer token")
	case current == nil || current.Verifier == nil:
		return d, denial.New(denial.KeysUnavailable, "no configuration is loaded yet")
	}
	var err error
	began := a.config.Clock.Now()
	d.Identity, err = verify(ctx, current.Verifier, r.Token, trace)
	began = a.metrics.stage(stageVerify, began, a.config.Clock)
	if err != nil {
		return d, err
	}
	cluster := current.cluster(d.Identity.Cluster)
	if cluster == nil || cluster.Rules == nil {
		return d, denial.New(denial.NotAllowed, "the configuration allows nothing to cluster %s", d.Identity.Cluster)
	}
	d.Grant, err = rule(cluster.Rules, d.Identity, trace)
	began = a.metrics.stage(stagePolicy, began, a.config.Clock)
	if err != nil {
		return d, err
	}
	if began, err = a.review(ctx, current, cluster, r.Token, d, began); err != nil {
		return d, err
	}
	d.Token, d.Cached, err = a.config.Minter.Mint(ctx, mint.Request{
		Subject: d.Identity, Target: d.Grant.Target, Generation: cluster.Generation,
	})
	a.metrics.stage(stageExchange, began, a.config.Clock)
	return d, err
}

// review asks the cluster, if its entry wants that. It returns when the next
// stage begins.
func (a *Authorizer) review(
	ctx context.Context, current *Snapshot, cluster *Cluster, token string, d Decision, began time.Time,
) (time.Time, error) {
	if cluster.Reviewer == nil {
		return began, nil
	}
	err := cluster.Reviewer.Review(ctx, d.Identity.Cluster, token, d.Identity)
	a.metrics.reviewed(current, d.Identity.Cluster, err)
	return a.metrics.stage(stageReview, began, a.config.Clock), err
}

// asDenial makes sure that there is a denial.Error in err's chain. A caller
// that went away does not learn that the hub is down.
func asDenial(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*denial.Error](err); ok {
		return refused
	}
	if ctx.Err() != nil {
		return &denial.Error{Reason: denial.Deadline, Detail: "the caller did not wait for the decision", RetryAfter: time.Second, Err: err}
	}
	return denial.Of(err)
}
