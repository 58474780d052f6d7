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

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Times of the publisher.
const (
	// period is how often the cluster is asked for its keys; a new key must be
	// on the hub before anybody signs with it.
	period = time.Minute
	// spread is the share of the period by which looks are put off, so that the
	// clusters of a fleet do not write in step.
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
	// Source is the cluster.
	Source *Source
	// Report is told how publishing goes, after every look; nil for nobody.
	Report Reporter
	// Metrics count.
	Metrics *Metrics
	// Clock is the time.
	Clock clock.WithTicker
	// Log tells what happens.
	Log logr.Logger
}

// Reporter is told how publishing goes; saying the same again costs it nothing.
type Reporter interface {
	Report(ctx context.Context, condition metav1.Condition)
	// Withdrawn is told once that nothing is published any more.
	Withdrawn(ctx context.Context)
}

// Publisher keeps a cluster's issuer published. It is a manager.Runnable of
// whatever holds the connection to the hub, and works while that leads.
type Publisher struct {
	config Config
	hub    *place
}

// New returns a publisher.
func New(config Config) (*Publisher, error) {
	hub, err := newPlace(config.Hub, config.Cluster)
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
	var published *Issuer
	for ctx.Err() == nil {
		if issuer, err := p.look(ctx, w); err == nil {
			published = &issuer
		}
		p.rest(ctx, w, published)
	}
	return nil
}

// rest waits for the next look: until its time has come, or the hub does not
// say any more what was published.
func (p *Publisher) rest(ctx context.Context, w *watch, published *Issuer) {
	timer := p.config.Clock.NewTimer(wait.Jitter(period, spread))
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
		if published == nil || !known || says(m, *published) {
			continue
		}
		p.pause(ctx, settle)
		return
	}
}

func (p *Publisher) pause(ctx context.Context, d time.Duration) {
	timer := p.config.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// look reads the cluster and brings the hub up to date.
func (p *Publisher) look(ctx context.Context, w *watch) (Issuer, error) {
	issuer, result, err := p.publish(ctx, w)
	if ctx.Err() != nil {
		return issuer, ctx.Err()
	}
	now := p.config.Clock.Now()
	if err != nil {
		p.config.Metrics.failed()
		p.config.Log.Info("The issuer of this cluster is not published", "reason", err.Error())
	} else {
		p.config.Metrics.succeeded(result, len(issuer.KeySet.Keys), now)
	}
	if result == resultPublished {
		p.config.Log.Info("Published the issuer of this cluster", "issuer", issuer.Name, "keys", ids(issuer.KeySet.Keys))
	}
	if p.config.Report != nil {
		p.config.Report.Report(ctx, condition(issuer, err))
	}
	return issuer, err
}

// errHub says that the hub is what failed.
var errHub = errors.New("publish")

func (p *Publisher) publish(ctx context.Context, w *watch) (issuer Issuer, result string, err error) {
	reading, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	issuer, err = p.config.Source.Read(reading)
	if err != nil {
		return issuer, "", err
	}
	live, known := w.state(ctx)
	if !known {
		if live, err = p.hub.get(ctx); err != nil {
			return issuer, "", fmt.Errorf("%w: %w", errHub, err)
		}
	}
	if says(live, issuer) {
		return issuer, resultUnchanged, nil
	}
	if err := p.hub.write(ctx, data(issuer, p.config.Clock.Now())); err != nil {
		return issuer, "", fmt.Errorf("%w: %w", errHub, err)
	}
	return issuer, resultPublished, nil
}

// condition says in a user's words what came of a look.
func condition(issuer Issuer, err error) metav1.Condition {
	c := metav1.Condition{Type: names.ConditionIssuerPublished, Status: metav1.ConditionFalse}
	switch {
	case err == nil:
		c.Status, c.Reason = metav1.ConditionTrue, names.ReasonIssuerPublished
		c.Message = fmt.Sprintf("the hub is shown the issuer %s and its keys %v", issuer.Name, ids(issuer.KeySet.Keys))
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
