package addon

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

const (
	// requestTimeout bounds a request.
	requestTimeout = 15 * time.Second
	// stepTimeout bounds a driver's step, which may be several requests.
	stepTimeout = 45 * time.Second
	// recheck is when to take a step without an event.
	recheck = 5 * time.Minute
	// maxSleep bounds a wait for the renewal time: timers do not advance while a
	// machine is suspended.
	maxSleep = 24 * time.Hour
	// pendingGrace is how long a step that waits without a failure is not reported: the
	// hub's controllers usually need less.
	pendingGrace = time.Second
	// mostSteps bounds the steps that follow each other immediately.
	mostSteps = 5
)

// failureReason is the reason of a failure without a specific reason.
const failureReason = "Failed"

func backoff() credential.Backoff {
	return credential.Backoff{First: time.Second, Most: 5 * time.Minute}
}

// state is the state of the credential of a registration.
type state struct {
	// validity is the validity of the stored credential; usable reports whether it is
	// valid.
	validity credential.Validity
	usable   bool
	// waiting is why a needed credential is missing.
	waiting driver.Waiting
	// failing is true if waiting describes a failure.
	failing bool
	// fresh is true if the wait has just begun and may end at once.
	fresh bool
}

// ensureCredential ensures that the Secret of a registration has a valid credential,
// as far as that is possible now, and sets it.state.
func (r *Reconciler) ensureCredential(ctx context.Context, s *scope, it *item) error {
	if it.problem != nil {
		it.state = state{failing: true, waiting: driver.Waiting{Reason: names.ReasonDriverUnavailable, Message: it.problem.Error()}}
		return nil //nolint:nilerr // reported in the add-on's condition
	}
	h, _, due := r.evaluate(s, it, s.secrets[it.secret])
	attempt := s.memory.attempt(it, s.now)
	if due && !r.mustWait(s, it, attempt) {
		// The cache may still have the Secret that was just replaced.
		live, err := r.secrets.live(ctx, it.secret)
		if err != nil {
			return err
		}
		var need credential.Need
		h, need, due = r.evaluate(s, it, live)
		if yields, err := r.yields(ctx, s, it, h, need); yields || err != nil {
			return err
		}
		if due {
			r.obtain(ctx, s, it, h, need)
			return nil
		}
	}
	it.state.validity, it.state.usable = h.facts.Validity, r.usable(s, h)
	if due {
		it.state.waiting, it.state.failing = attempt.state.waiting, attempt.state.failing
		s.after(attempt.until.Sub(s.now))
		s.setFresh(it, attempt)
		return nil
	}
	return r.requeueAtRenewal(ctx, s, it, h)
}

// requeueAtRenewal repairs the Secret of a valid credential, and requeues the add-on
// when the credential is due for renewal.
func (r *Reconciler) requeueAtRenewal(ctx context.Context, s *scope, it *item, h stored) error {
	delete(s.memory.attempts, it.secret.Name)
	if err := r.ensureSecret(ctx, it, h); err != nil {
		return err
	}
	if err := r.dropPending(ctx, s, it); err != nil {
		return err
	}
	r.config.Metrics.setCredential(s.addOn.Name, it, h.facts.Validity, h.obtained)
	if !h.facts.Validity.Unlimited {
		s.after(min(h.facts.RenewAt.Sub(s.now), maxSleep))
	}
	if h.rotateAt.After(s.now) {
		s.after(min(h.rotateAt.Sub(s.now), maxSleep))
	}
	return nil
}

// setFresh sets whether a wait has just begun.
func (s *scope) setFresh(it *item, a *attempt) {
	if reportAt := a.since.Add(pendingGrace); !it.state.failing && reportAt.After(s.now) {
		it.state.fresh = true
		s.after(reportAt.Sub(s.now))
	}
}

// attempt returns the current attempt to obtain the credential of it.
func (m *addOnMemory) attempt(it *item, now time.Time) *attempt {
	known, ok := m.attempts[it.secret.Name]
	if !ok {
		known = &attempt{since: now}
		m.attempts[it.secret.Name] = known
	}
	return known
}

// cause returns a digest of the fields of the add-on that a step of a registration
// depends on. The agent's own conditions are not among them.
func cause(s *scope, it *item) string {
	ready := ""
	if c := apimeta.FindStatusCondition(s.addOn.Status.Conditions, names.ConditionTokenInfrastructureReady); c != nil {
		ready = string(c.Status) + c.Message
	}
	return digest([]any{
		s.addOn.UID, it.secret, s.addOn.Status.Registrations[it.index], ready, s.addOn.Annotations[names.AnnotationRotate],
	})
}

// mustWait reports whether the next step has to wait.
func (r *Reconciler) mustWait(s *scope, it *item, a *attempt) bool {
	if it.declared {
		// A credential is requested only for a subject that the hub has seen.
		a.state = state{waiting: driver.Waiting{Reason: names.ReasonAddOnDeclared, Message: fmt.Sprintf(
			"waiting for the hub to observe the %s registration in the add-on's status", it.label())}}
		a.until = s.now.Add(recheck)
		a.cause = ""
		return true
	}
	return a.cause == cause(s, it) && a.woken == r.memory.woken(s.memory) && a.until.After(s.now)
}

// obtain takes the driver's steps until one has to wait, and sets it.state.
func (r *Reconciler) obtain(ctx context.Context, s *scope, it *item, h stored, need credential.Need) {
	a := s.memory.attempt(it, s.now)
	if because := cause(s, it); a.cause != because {
		a.cause, a.failures, a.warned = because, 0, ""
	}
	a.woken = r.memory.woken(s.memory)
	step, err := r.steps(ctx, s, it, h, need)
	it.state = state{validity: h.facts.Validity, usable: r.usable(s, h)}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		it.state.waiting = driver.Waiting{Reason: names.ReasonSecretTaken, Message: "another agent of this cluster writes the same Secret: " + err.Error()}
		a.until = r.config.Clock.Now().Add(firstRetry)
	case err != nil:
		a.failures++
		it.state.waiting = driver.Waiting{Reason: failureReason, Message: err.Error()}
		it.state.failing = true
		a.until = r.config.Clock.Now().Add(r.delay(s, a, err))
		r.config.Metrics.count(s.addOn.Name, it, resultFailure, reasonOf(err))
	case step.Issued != nil:
		it.state = state{validity: step.Issued.Validity, usable: true}
		delete(s.memory.attempts, it.secret.Name)
		r.config.Metrics.count(s.addOn.Name, it, resultSuccess, string(need.Reason))
		if lost(need) {
			s.memory.record([]string{lossOf(it)}, s.now)
		}
		s.after(time.Millisecond) // To compute the renewal time from the stored credential.
		return
	default:
		it.state.waiting, it.state.failing = step.Waiting, step.Failing
		a.failures = 0
		wait := recheck
		if step.After > 0 {
			wait = min(wait, step.After)
		}
		a.until = r.config.Clock.Now().Add(wait)
		if step.Failing {
			r.config.Metrics.count(s.addOn.Name, it, resultFailure, step.Waiting.Reason)
		}
	}
	a.state = it.state
	s.after(a.until.Sub(s.now))
	s.setFresh(it, a)
	r.warn(s, it, a)
}

// warn records an event about a new failure.
func (r *Reconciler) warn(s *scope, it *item, a *attempt) {
	if it.state.failing && a.warned != it.state.waiting.Reason {
		a.warned = it.state.waiting.Reason
		r.events.warning(s.addOn, it, it.state.waiting)
	}
}

// delay returns the wait after a failure, at least as long as the server requests.
func (r *Reconciler) delay(s *scope, a *attempt, err error) time.Duration {
	delay := backoff().Delay(a.failures, string(s.addOn.UID)+s.addOn.Name)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		delay = max(delay, time.Duration(seconds)*time.Second)
	}
	return delay
}

// steps takes steps until one waits, stores the pending data of each, and stores the
// issued credential.
func (r *Reconciler) steps(ctx context.Context, s *scope, it *item, h stored, need credential.Need) (driver.Step, error) {
	if missing, err := r.namespaceMissing(ctx, s.namespace); err != nil || missing.Waiting.Reason != "" {
		return missing, err
	}
	var step driver.Step
	for range mostSteps {
		pending := r.pending(s, it)
		var err error
		if step, err = r.step(ctx, it, pending); err != nil {
			return step, err
		}
		if step.Issued != nil {
			if !stale(step.Issued, h) {
				return step, r.store(ctx, s, it, h, step.Issued, need)
			}
			// It was stored before, by a process that crashed before it deleted the
			// pending data.
			if err := r.dropPending(ctx, s, it); err != nil {
				return step, err
			}
			continue
		}
		if !apiequality.Semantic.DeepEqual(step.Pending, pending) {
			if err := r.setPending(ctx, s, it, step.Pending); err != nil {
				return step, err
			}
		}
		if !step.Again {
			break
		}
	}
	return step, r.watches.follow(ctx, step.Watch)
}

func (r *Reconciler) step(ctx context.Context, it *item, pending driver.Data) (driver.Step, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return it.driver.Obtain(ctx, r.config.Live, pending)
}

// stale reports whether the issued credential is the stored one that needs to be
// replaced.
func stale(issued *driver.Issued, h stored) bool {
	if len(issued.Data) == 0 || h.facts.Problem != nil {
		return false
	}
	for key, value := range issued.Data {
		if string(h.data[key]) != string(value) {
			return false
		}
	}
	return true
}

// reasonOf returns the reason of a failure for metrics.
func reasonOf(err error) string {
	if rejected, ok := errors.AsType[*driver.RequestError](err); ok {
		return rejected.Reason
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "Timeout"
	}
	return failureReason
}
