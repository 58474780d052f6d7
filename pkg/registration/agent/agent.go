package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/status"
)

// Agent is one registration agent. It runs while its manager is the leader.
type Agent struct {
	config   Config
	log      logr.Logger
	store    *store
	eventLog *eventLog
	metrics  *metrics
	events   recorder
	sources  status.Sources
	addOns   addOns

	// secrets is signaled when a kubeconfig Secret changed, facts when a field of the
	// cluster's status may have changed.
	secrets wakeup
	facts   wakeup

	stored storedCredentials
	// rejected is the credential that the hub rejects.
	rejected rejection
}

// rejection is a credential that the hub rejects although it has not expired.
type rejection struct {
	// fingerprint identifies it, as its driver does.
	fingerprint string
	why         string
}

// Setup adds an agent to the manager of its managed cluster. Metrics are
// registered with registry. The manager's cache must have been made with
// CacheOptions.
func Setup(mgr ctrl.Manager, registry prometheus.Registerer, config Config) (*Agent, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	log := mgr.GetLogger().WithName("agent")
	a := &Agent{
		config: config, log: log, metrics: m,
		eventLog: newEventLog(log, m),
		store: &store{
			namespace: config.Namespace, names: config.Names, secrets: config.Secrets,
			reader: mgr.GetAPIReader(), writer: mgr.GetClient(), log: log,
		},
		events:  newRecorder(mgr.GetEventRecorder("registration-agent"), config),
		secrets: newWakeup(), facts: newWakeup(),
	}
	if a.addOns, err = newAddOns(mgr, registry, config); err != nil {
		return nil, err
	}
	if a.sources, err = a.newSources(mgr); err != nil {
		return nil, err
	}
	if err := (&secretReconciler{agent: a, reader: mgr.GetClient()}).setup(mgr); err != nil {
		return nil, err
	}
	if err := a.watchNodes(mgr); err != nil {
		return nil, err
	}
	if config.Names.Klusterlet != "" {
		reporter := &klusterletReporter{name: config.Names.Klusterlet, reader: mgr.GetAPIReader(), writer: mgr.GetClient(), clock: config.Clock, eventLog: a.eventLog}
		if err := reporter.setup(mgr); err != nil {
			return nil, err
		}
	}
	return a, mgr.Add(a)
}

// Report returns the current report of the agent.
func (a *Agent) Report() Report { return a.eventLog.current() }

// NeedLeaderElection implements manager.LeaderElectionRunnable: two agents would
// create two CSRs.
func (a *Agent) NeedLeaderElection() bool { return true }

// errChanged ends a phase of the agent whose Secrets changed.
var errChanged = errors.New("the Secrets of the agent changed")

// Start implements manager.Runnable. It returns when ctx ends; errors of the hub, of
// the credential and of the API server are retried.
func (a *Agent) Start(ctx context.Context) error {
	backoff := credential.Backoff{First: time.Second, Most: time.Minute}
	failures := 0
	for ctx.Err() == nil {
		err := a.live(ctx)
		if err == nil || errors.Is(err, errChanged) {
			failures = 0
			continue
		}
		failures++
		delay := backoff.Delay(failures, a.config.Names.Klusterlet+a.config.Namespace)
		a.log.Info("Retrying", "reason", err.Error(), "delay", delay)
		a.awaitChange(ctx, delay)
	}
	return nil
}

// live reads the stored state and acts on it until it changes. An error is retried
// after a back-off.
func (a *Agent) live(ctx context.Context) error {
	s, err := a.look(ctx)
	if err != nil {
		a.eventLog.report(Report{Phase: Bootstrapping, Hub: Condition{names.ReasonHubKubeConfigError, err.Error()}})
		return err
	}
	a.metrics.setExpiry(s.facts.Validity)
	need, usable := s.usable(a.config.Clock.Now())
	if usable && a.rejected.why != "" && a.rejected.fingerprint == s.fingerprint() {
		need, usable = credential.Need{Reason: credential.Malformed, Message: a.rejected.why}, false
	}
	if usable {
		return a.within(ctx, a.sameConnection(s), func(ctx context.Context) error { return a.connect(ctx, s) })
	}
	if adopted, err := a.adopt(ctx, s); adopted || err != nil {
		return err
	}
	same := func(now *snapshot) bool { return now.sameBootstrap(s) }
	return a.within(ctx, same, func(ctx context.Context) error { return a.bootstrapUnlessKnown(ctx, s, need) })
}

// within runs fn as long as valid accepts the stored state, which it reads after each
// change of a Secret. Otherwise it ends the context of fn and returns errChanged.
func (a *Agent) within(ctx context.Context, valid func(*snapshot) bool, fn func(context.Context) error) error {
	invalid := func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-a.secrets:
			}
			if now, err := a.lookAgain(ctx); err == nil && !valid(now) {
				return errChanged
			}
		}
	}
	return until(ctx, invalid, fn)
}

// until runs fn, and watch at the same time. When watch returns an error, it ends the
// context of fn with that cause and returns it.
func until(ctx context.Context, watch, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup // It ends with ctx, and until waits for that.
	var cause error
	watching.Go(func() {
		if cause = watch(ctx); cause != nil {
			cancel(cause)
		}
	})
	err := fn(ctx)
	cancel(nil)
	watching.Wait()
	if cause != nil {
		return cause
	}
	return err
}

// lookAgain reads the stored state, and retries until ctx ends.
func (a *Agent) lookAgain(ctx context.Context) (*snapshot, error) {
	for {
		s, err := a.look(ctx)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		pause.For(ctx, a.config.Clock, time.Second)
	}
}

// awaitChange waits for d, the end of ctx or the change of a Secret. What runs in within
// must not call it, because within receives these changes.
func (a *Agent) awaitChange(ctx context.Context, d time.Duration) {
	timer := a.config.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-a.secrets:
	}
}

// recorder records events about the agent on the managed cluster.
type recorder struct {
	events.EventRecorder
	about *corev1.ObjectReference
}

func newRecorder(r events.EventRecorder, config Config) recorder {
	return recorder{EventRecorder: r, about: &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Secret", Namespace: config.Namespace, Name: config.Secrets.Hub,
	}}
}

func (r recorder) normal(reason, action, note string, args ...any) {
	r.Eventf(r.about, nil, corev1.EventTypeNormal, reason, action, note, args...)
}

func (r recorder) warning(reason, action, note string, args ...any) {
	r.Eventf(r.about, nil, corev1.EventTypeWarning, reason, action, note, args...)
}
