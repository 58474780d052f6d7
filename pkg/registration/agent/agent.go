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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/status"
)

// Agent is one registration agent. It works while its manager leads.
type Agent struct {
	config  Config
	log     logr.Logger
	store   *store
	journal *journal
	metrics *metrics
	events  recorder
	sources status.Sources
	addOns  addOns

	// secrets rings when a kubeconfig Secret changed, facts when something that
	// the status tells did.
	secrets bell
	facts   bell

	held held
	// refused is the credential that is of no use on the hub any more.
	refused refusal
}

// refusal is a credential that leads nowhere although it has not expired.
type refusal struct {
	// fingerprint names it, as its driver does.
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
		journal: newJournal(log, m),
		store: &store{
			namespace: config.Namespace, names: config.Names, secrets: config.Secrets,
			reader: mgr.GetAPIReader(), writer: mgr.GetClient(), log: log,
		},
		events:  newRecorder(mgr.GetEventRecorder("registration-agent"), config),
		secrets: newBell(), facts: newBell(),
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
		reporter := &klusterletReporter{name: config.Names.Klusterlet, reader: mgr.GetAPIReader(), writer: mgr.GetClient(), clock: config.Clock, journal: a.journal}
		if err := reporter.setup(mgr); err != nil {
			return nil, err
		}
	}
	return a, mgr.Add(a)
}

// Report returns what the agent tells about itself now.
func (a *Agent) Report() Report { return a.journal.current() }

// NeedLeaderElection implements manager.LeaderElectionRunnable: two agents
// would make two requests.
func (a *Agent) NeedLeaderElection() bool { return true }

// errChanged ends what the agent does because the ground for it is gone; the
// next look tells what to do instead.
var errChanged = errors.New("what is stored on the managed cluster changed")

// Start implements manager.Runnable: it lives until ctx ends. No error of the
// hub, of the credential or of the API server ends it.
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
		a.log.Info("Trying again", "reason", err.Error(), "delay", delay)
		a.pause(ctx, delay)
	}
	return nil
}

// live is one stretch of the agent's life: from a look at what is stored to the
// moment that this no longer holds. An error is something to wait out.
func (a *Agent) live(ctx context.Context) error {
	s, err := a.look(ctx)
	if err != nil {
		a.journal.report(Report{Phase: Bootstrapping, Hub: Condition{names.ReasonHubKubeConfigError, err.Error()}})
		return err
	}
	a.metrics.holds(s.facts.Validity)
	need, usable := s.usable(a.config.Clock.Now())
	if usable && a.refused.why != "" && a.refused.fingerprint == s.fingerprint() {
		need, usable = credential.Need{Reason: credential.Malformed, Message: a.refused.why}, false
	}
	if usable {
		return a.within(ctx, a.holdsConnection(s), func(ctx context.Context) error { return a.connect(ctx, s) })
	}
	if adopted, err := a.adopt(ctx, s); adopted || err != nil {
		return err
	}
	same := func(now *snapshot) bool { return now.sameBootstrap(s) }
	return a.within(ctx, same, func(ctx context.Context) error { return a.bootstrapUnlessKnown(ctx, s, need) })
}

// within runs fn while what is stored lets it: whenever a Secret changed, holds
// is asked, and when it says no, fn's context ends and errChanged is returned.
func (a *Agent) within(ctx context.Context, holds func(*snapshot) bool, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	guard := make(chan struct{})
	go func() { // Ends with ctx, and within waits for that.
		defer close(guard)
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.secrets:
			}
			now, err := a.lookAgain(ctx)
			if err == nil && !holds(now) {
				cancel(errChanged)
			}
		}
	}()
	err := fn(ctx)
	changed := errors.Is(context.Cause(ctx), errChanged)
	cancel(nil)
	<-guard
	if changed {
		return errChanged
	}
	return err
}

// lookAgain looks until it sees or ctx ends.
func (a *Agent) lookAgain(ctx context.Context) (*snapshot, error) {
	for {
		s, err := a.look(ctx)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		a.sleep(ctx, time.Second)
	}
}

// sleep waits.
func (a *Agent) sleep(ctx context.Context, d time.Duration) {
	timer := a.config.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// until returns a context that ends with cause when the clock says so.
func (a *Agent) until(ctx context.Context, end time.Time, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var waiting sync.WaitGroup // It ends with ctx, and cancel waits for that.
	waiting.Go(func() {
		a.sleep(ctx, end.Sub(a.config.Clock.Now()))
		cancel(cause)
	})
	return ctx, func() { cancel(nil); waiting.Wait() }
}

// pause waits, but not longer than until a Secret changes. It is for where no
// guard of within listens.
func (a *Agent) pause(ctx context.Context, d time.Duration) {
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
