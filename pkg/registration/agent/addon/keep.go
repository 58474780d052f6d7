package addon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	// requestTimeout ends a request that hangs.
	requestTimeout = 15 * time.Second
	// stepTimeout ends a driver's step, which may be several requests.
	stepTimeout = 45 * time.Second
	// recheck is when to take a step although nothing was seen to change.
	recheck = 5 * time.Minute
	// longestNap is how long a wait for the renewal point may be: timers stand
	// still while a machine is suspended.
	longestNap = 24 * time.Hour
	// untold is how long a wait that is no failure goes on before it is told:
	// the hub's controllers seldom need as long.
	untold = time.Second
	// mostSteps is how many steps may follow each other at once.
	mostSteps = 5
)

// failureReason is the reason of a failure that has no better name.
const failureReason = "Failed"

func backoff() credential.Backoff {
	return credential.Backoff{First: time.Second, Most: 5 * time.Minute}
}

// state is how the credential of a registration stands.
type state struct {
	// validity is that of the stored credential; usable says that it is good.
	validity credential.Validity
	usable   bool
	// waiting is why there is no new one although one is needed.
	waiting driver.Waiting
	// failing says that waiting is about a failure.
	failing bool
	// fresh says that the wait has just begun and may be over before anybody
	// reads of it.
	fresh bool
}

// keep makes sure that the Secret of a registration holds a good credential, as
// far as that is possible now, and says in it.state how it stands.
func (r *Reconciler) keep(ctx context.Context, s *scope, it *item) error {
	if it.problem != nil {
		it.state = state{failing: true, waiting: driver.Waiting{Reason: names.ReasonDriverUnavailable, Message: it.problem.Error()}}
		return nil //nolint:nilerr // it is told in the add-on's condition
	}
	h, _, due := r.judge(s, it, s.secrets[it.secret])
	attempt := s.memory.attempt(it, s.now)
	if due && !r.holds(s, it, attempt) {
		// What is cached may be what was replaced just now.
		live, err := r.secrets.live(ctx, it.secret)
		if err != nil {
			return err
		}
		var need credential.Need
		h, need, due = r.judge(s, it, live)
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
		s.freshen(it, attempt)
		return nil
	}
	return r.rest(ctx, s, it, h)
}

// rest is what is done for a registration whose credential is good.
func (r *Reconciler) rest(ctx context.Context, s *scope, it *item, h held) error {
	delete(s.memory.attempts, it.secret.Name)
	if err := r.tend(ctx, it, h); err != nil {
		return err
	}
	if err := r.dropPending(ctx, s, it); err != nil {
		return err
	}
	r.config.Metrics.holds(s.addOn.Name, it, h.facts.Validity, h.obtained)
	if !h.facts.Validity.Unlimited {
		s.after(min(h.facts.RenewAt.Sub(s.now), longestNap))
	}
	if h.rotateAt.After(s.now) {
		s.after(min(h.rotateAt.Sub(s.now), longestNap))
	}
	return nil
}

// freshen finds out whether a wait has just begun.
func (s *scope) freshen(it *item, a *attempt) {
	if told := a.since.Add(untold); !it.state.failing && told.After(s.now) {
		it.state.fresh = true
		s.after(told.Sub(s.now))
	}
}

// attempt returns what is known about obtaining the credential of it.
func (m *addOnMemory) attempt(it *item, now time.Time) *attempt {
	known, ok := m.attempts[it.secret.Name]
	if !ok {
		known = &attempt{since: now}
		m.attempts[it.secret.Name] = known
	}
	return known
}

// cause is what a step of a registration depends on beside time: what the hub
// says in the add-on. Its agent's own conditions are no part of it.
func cause(s *scope, it *item) string {
	infrastructure := apimeta.FindStatusCondition(s.addOn.Status.Conditions, names.ConditionTokenInfrastructureReady)
	said := ""
	if infrastructure != nil {
		said = string(infrastructure.Status) + infrastructure.Message
	}
	data, err := json.Marshal([]any{
		s.addOn.UID, it.secret, s.addOn.Status.Registrations[it.index], said, s.addOn.Annotations[names.AnnotationRotate],
	})
	if err != nil {
		return said // Strings and structures of strings can be encoded.
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// holds reports whether the next step has to wait.
func (r *Reconciler) holds(s *scope, it *item, a *attempt) bool {
	if it.declared {
		// Nothing is obtained for a subject that the hub does not know yet.
		a.state = state{waiting: driver.Waiting{Reason: names.ReasonAddOnDeclared, Message: fmt.Sprintf(
			"waiting for the hub to see the %s registration that this cluster declared", it.label())}}
		a.until = s.now.Add(recheck)
		a.cause = ""
		return true
	}
	return a.cause == cause(s, it) && a.woken == r.memory.woken(s.memory) && a.until.After(s.now)
}

// obtain takes the driver's steps until one has to wait, and sets it.state.
func (r *Reconciler) obtain(ctx context.Context, s *scope, it *item, h held, need credential.Need) {
	a := s.memory.attempt(it, s.now)
	if because := cause(s, it); a.cause != because {
		a.cause, a.failures, a.warned = because, 0, ""
	}
	a.woken = r.memory.woken(s.memory)
	step, err := r.steps(ctx, s, it, h, need)
	it.state = state{validity: h.facts.Validity, usable: r.usable(s, h)}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		it.state.waiting = driver.Waiting{Reason: names.ReasonSecretTaken, Message: "another agent of this cluster stores credentials as well: " + err.Error()}
		a.until = r.config.Clock.Now().Add(firstRetry)
	case err != nil:
		a.failures++
		it.state.waiting = driver.Waiting{Reason: failureReason, Message: err.Error()}
		it.state.failing = true
		a.until = r.config.Clock.Now().Add(r.delay(s, a, err))
		r.config.Metrics.failed(s.addOn.Name, it, reasonOf(err))
	case step.Issued != nil:
		it.state = state{validity: step.Issued.Validity, usable: true}
		delete(s.memory.attempts, it.secret.Name)
		r.config.Metrics.renewed(s.addOn.Name, it, string(need.Reason))
		if lost(need) {
			s.memory.say([]string{lossOf(it)}, s.now)
		}
		s.after(time.Millisecond) // To sleep until the renewal point of what is stored.
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
			r.config.Metrics.failed(s.addOn.Name, it, step.Waiting.Reason)
		}
	}
	a.state = it.state
	s.after(a.until.Sub(s.now))
	s.freshen(it, a)
	r.warn(s, it, a)
}

// warn records an event about a failure when it is new.
func (r *Reconciler) warn(s *scope, it *item, a *attempt) {
	if it.state.failing && a.warned != it.state.waiting.Reason {
		a.warned = it.state.waiting.Reason
		r.tell.warning(s.addOn, it, it.state.waiting)
	}
}

// delay is the wait after a failure, as long as the server asks for or longer.
func (r *Reconciler) delay(s *scope, a *attempt, err error) time.Duration {
	delay := backoff().Delay(a.failures, string(s.addOn.UID)+s.addOn.Name)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		delay = max(delay, time.Duration(seconds)*time.Second)
	}
	return delay
}

// steps takes steps while they lead on, storing what each leaves pending, and
// stores the credential.
func (r *Reconciler) steps(ctx context.Context, s *scope, it *item, h held, need credential.Need) (driver.Step, error) {
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
			// It was stored, and a crash kept the request from being forgotten.
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

// stale reports whether what was issued is what is stored already, and needed
// to be replaced.
func stale(issued *driver.Issued, h held) bool {
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

// reasonOf is a word for a failure that tells kinds of failures apart.
func reasonOf(err error) string {
	if refused, ok := errors.AsType[*driver.RequestError](err); ok {
		return refused.Reason
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "Timeout"
	}
	return failureReason
}
