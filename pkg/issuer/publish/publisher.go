package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Times of the publisher.
const (
	// period is the interval of reading the cluster's keys; a new key must be on the
	// hub before the API server signs with it.
	period = time.Minute
	// proving is the interval while the cluster serves a key that it has not been seen
	// to sign with. The key is not trusted before, so the hub must learn of it soon
	// after the cluster begins to sign with it.
	proving = 10 * time.Second
	// spread is the share of the period that delays reads, so that the clusters of a
	// fleet do not write in step.
	spread = 0.1
	// settle is how long a change on the hub is left alone before it is undone,
	// so that two that disagree do not write as fast as they can.
	settle = 5 * time.Second
)

// Config is how a publisher works.
type Config struct {
	// Cluster names the cluster on the hub, and so the namespace.
	Cluster string
	// Hub is the connection with the cluster's own credential.
	Hub *rest.Config
	// Clusters reads the cluster's ManagedCluster, from a cache if there is one;
	// nil reads it by Hub.
	Clusters client.Reader
	// Source is the cluster.
	Source *Source
	// Report receives the condition after every read of the cluster; it may be nil.
	Report Reporter
	// Metrics count.
	Metrics *Metrics
	// Clock is the time.
	Clock clock.WithTicker
	// Log gets what happens.
	Log logr.Logger
}

// Reporter receives the state of publishing; repeating a report costs nothing.
type Reporter interface {
	Report(ctx context.Context, condition metav1.Condition)
	// Withdrawn is called once when nothing is published any more.
	Withdrawn(ctx context.Context)
}

// Publisher keeps a cluster's issuer published. It is a manager.Runnable of the
// component that owns the connection to the hub, and works while that is the leader.
type Publisher struct {
	config Config
	hub    *place
}

// New returns a publisher.
func New(config Config) (*Publisher, error) {
	hub, err := newPlace(config)
	if err != nil {
		return nil, err
	}
	return &Publisher{config: config, hub: hub}, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *Publisher) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it publishes until ctx ends. No error ends
// it, and none makes it take back what is published.
func (p *Publisher) Start(ctx context.Context) error {
	w, err := p.hub.watch(ctx)
	if err != nil {
		return err
	}
	defer w.wait()
	var last *outcome
	for ctx.Err() == nil {
		if o, err := p.look(ctx, w); err == nil {
			last = &o
		}
		p.await(ctx, w, last)
	}
	return nil
}

// outcome is the outcome of one read of the cluster.
type outcome struct {
	issuer Issuer
	// result is one of the results of the metric, empty for a failure.
	result string
	// content is the published data, and unproven the keys in it without a proof.
	content  map[string]string
	unproven []string
}

// await waits until the next read is due, or until the hub's data differs from what was
// published.
func (p *Publisher) await(ctx context.Context, w *watch, last *outcome) {
	next := period
	if last != nil && len(last.unproven) > 0 {
		next = proving
	}
	timer := p.config.Clock.NewTimer(wait.Jitter(next, spread))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
			return
		case <-w.changed:
		}
		m, known := w.state(ctx)
		if last == nil || !known || says(m, last.content) {
			continue
		}
		pause.For(ctx, p.config.Clock, settle)
		return
	}
}

// look reads the cluster and updates the hub.
func (p *Publisher) look(ctx context.Context, w *watch) (outcome, error) {
	o, err := p.publish(ctx, w)
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	now := p.config.Clock.Now()
	if err != nil {
		p.config.Metrics.failed()
		p.config.Log.Info("The issuer of this cluster is not published", "reason", err.Error())
	} else {
		p.config.Metrics.succeeded(o.result, len(o.issuer.KeySet.Keys), now)
	}
	if o.result == resultPublished {
		p.config.Log.Info("Published the issuer of this cluster", "issuer", o.issuer.Name, "keys", ids(o.issuer.KeySet.Keys), "unproven", o.unproven)
	}
	if p.config.Report != nil {
		p.config.Report.Report(ctx, condition(o, err))
	}
	return o, err
}

// errHub marks failures of the hub.
var errHub = errors.New("publish")

func (p *Publisher) publish(ctx context.Context, w *watch) (o outcome, err error) {
	cluster, err := p.hub.membership(ctx)
	if err != nil {
		return o, fmt.Errorf("%w: %w", errHub, err)
	}
	reading, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	o.issuer, err = p.config.Source.Prove(reading, cluster)
	if err != nil {
		return o, err
	}
	live, known := w.state(ctx)
	if !known {
		if live, err = p.hub.get(ctx); err != nil {
			return o, fmt.Errorf("%w: %w", errHub, err)
		}
	}
	o.content, o.unproven = content(cluster, o.issuer, live)
	if says(live, o.content) {
		o.result = resultUnchanged
		return o, nil
	}
	if err := p.hub.write(ctx, dated(o.content, p.config.Clock.Now())); err != nil {
		return o, fmt.Errorf("%w: %w", errHub, err)
	}
	o.result = resultPublished
	return o, nil
}

// condition says in a user's words what came of a look.
func condition(o outcome, err error) metav1.Condition {
	c := metav1.Condition{Type: names.ConditionIssuerPublished, Status: metav1.ConditionFalse}
	switch {
	case err == nil:
		c.Status, c.Reason = metav1.ConditionTrue, names.ReasonIssuerPublished
		c.Message = fmt.Sprintf("the hub is shown the issuer %s and its keys %v", o.issuer.Name, ids(o.issuer.KeySet.Keys))
		if len(o.unproven) > 0 {
			c.Message += fmt.Sprintf("; the hub accepts tokens signed with %v once this cluster signs with it", o.unproven)
		}
		return c
	case errors.Is(err, ErrNotServed):
		c.Reason = names.ReasonKeysNotServed
	case errors.Is(err, ErrSelfTest), errors.Is(err, ErrUnusable):
		c.Reason = names.ReasonSelfTestFailed
	case errors.Is(err, errHub):
		c.Reason = names.ReasonHubRefusesIssuer
	default:
		c.Reason = names.ReasonIssuerUnreadable
	}
	c.Message = err.Error()
	if apierrors.IsForbidden(err) && c.Reason == names.ReasonHubRefusesIssuer {
		c.Message = "the hub does not let this cluster publish its issuer: the hub must be of this version, and accept the cluster"
	}
	return c
}
