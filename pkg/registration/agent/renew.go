package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

const (
	// longestNap is how long a wait for the renewal point may be without a look
	// at the clock: timers stand still while a machine is suspended.
	longestNap = 10 * time.Minute
	// troublePatience is how long the hub must be out of reach before it is
	// told: a restart of its API server is shorter.
	troublePatience = 30 * time.Second
)

// keepCredential renews the credential in time, over and over, and ends the
// connection when it could not. It returns when ctx ends.
func (c *connected) keepCredential(ctx context.Context) {
	clock := c.agent.config.Clock
	for failures := 0; ctx.Err() == nil; {
		facts := c.snapshot.facts
		if facts.Validity.Unlimited {
			<-ctx.Done()
			return
		}
		need, due := credential.Due().Judge(facts, clock.Now())
		switch {
		case need.Reason == credential.Expired:
			c.end(errExpired)
			return
		case !due:
			c.agent.sleep(ctx, min(facts.RenewAt.Sub(clock.Now()), longestNap))
			continue
		}
		err := c.renew(ctx, need)
		if err == nil {
			failures = 0
			continue
		}
		failures++
		retry := credential.Backoff{First: 5 * time.Second, Most: 5 * time.Minute}.Delay(failures, c.snapshot.identity.Cluster)
		c.agent.sleep(ctx, min(retry, max(facts.Validity.NotAfter.Sub(clock.Now()), 0)))
	}
}

// renew obtains a new credential with the old one and makes the connection use
// it, without interrupting anything that goes on.
func (c *connected) renew(ctx context.Context, need credential.Need) error {
	a := c.agent
	a.events.normal(names.EventRotationStarted, "Renew", "%s", need.Message)
	a.journal.renews(true)
	defer a.journal.renews(false)
	ctx, cancel := a.until(ctx, c.snapshot.facts.Validity.NotAfter, errExpired)
	defer cancel()
	// What else is waited for is somebody's turn and no news.
	o := &obtaining{agent: a, snapshot: c.snapshot, hub: c.hub, kubeconfig: *c.snapshot.hub, purpose: renewal, waits: func(Condition) {}, fails: c.tellFailure}
	issued, err := o.run(ctx)
	if err != nil {
		return err
	}
	data, err := c.snapshot.hubData(*c.snapshot.hub, issued.Data)
	if err != nil {
		return err
	}
	// From here on the Secret may hold either credential; the guard must know
	// that both are ours.
	a.held.set(c.snapshot.fingerprint(), c.snapshot.driver.Fingerprint(data))
	if err := a.keep(ctx, c.snapshot, data, issued); err != nil {
		return err // The request is still pending: trying again finds what was issued.
	}
	c.snapshot = c.snapshot.with(data, &a.held)
	if err := c.conn.Reload(data); err != nil {
		return err
	}
	c.credential.valid(c.snapshot)
	a.facts.ring()
	return nil
}

// tellFailure tells the hub about a renewal that does not get on.
func (c *connected) tellFailure(failure Condition) {
	c.agent.log.Info("Renewing the hub credential fails", "reason", failure.Reason, "message", failure.Message)
	c.credential.failed(c.snapshot, failure)
	c.agent.facts.ring()
}

// credentialCondition is the condition that reports the credential, if its driver
// has one, written by the status reconciler together with everything else.
type credentialCondition struct {
	mu        sync.Mutex
	condition *metav1.Condition
}

func (c *credentialCondition) get() *metav1.Condition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.condition.DeepCopy()
}

func (c *credentialCondition) set(report driver.Report, status metav1.ConditionStatus, words driver.Waiting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.condition = &metav1.Condition{Type: report.Conditions[0], Status: status, Reason: words.Reason, Message: words.Message}
}

func (c *credentialCondition) valid(s *snapshot) {
	if report := s.driver.Report(); len(report.Conditions) > 0 {
		c.set(report, metav1.ConditionTrue, report.Valid(s.facts.Validity))
	}
}

func (c *credentialCondition) failed(s *snapshot, why Condition) {
	if report := s.driver.Report(); len(report.Conditions) > 0 {
		c.set(report, metav1.ConditionFalse, report.Failed(driver.Waiting(why)))
	}
}

// reach judges how the hub can be reached by what becomes of the lease, and of
// the questions that follow a request without an answer.
type reach struct {
	agent  *Agent
	server string
	end    context.CancelCauseFunc
	reset  func()

	mu           sync.Mutex
	failingSince time.Time
	refusedSince time.Time
}

func (r *reach) observe(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.agent.config.Clock.Now()
	r.refusedSince = unauthorizedSince(err, r.refusedSince, now)
	switch {
	case err == nil, apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// The hub answered and knows who we are.
		if !r.failingSince.IsZero() {
			r.agent.journal.suffers(Condition{})
		}
		r.failingSince = time.Time{}
		return
	case apierrors.IsUnauthorized(err):
		if now.Sub(r.refusedSince) >= refusedPatience {
			r.end(errRefused)
		}
		return
	case errors.Is(err, context.DeadlineExceeded):
		r.reset()
	}
	if r.failingSince.IsZero() {
		r.failingSince = now
	}
	if now.Sub(r.failingSince) >= troublePatience {
		r.agent.journal.suffers(Condition{names.ReasonHubKubeConfigError, fmt.Sprintf("the hub at %s is out of reach since %s: %v", r.server, r.failingSince.UTC().Format(time.RFC3339), errors.Unwrap(err))})
	}
}

// held are the credentials that the agent itself stored last, by fingerprint:
// whatever else appears in the Secret is a reason to look. It also knows when this
// process obtained the newest.
type held struct {
	mu           sync.Mutex
	fingerprints []string
	obtained     string
	at           time.Time
}

func (h *held) set(fingerprints ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fingerprints = fingerprints
}

func (h *held) contains(fingerprint string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.fingerprints, fingerprint)
}

func (h *held) obtain(fingerprint string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.obtained, h.at = fingerprint, at
}

// since is when this process obtained a credential; false if it did not.
func (h *held) since(fingerprint string) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at, h.obtained != "" && h.obtained == fingerprint
}

// holdsConnection returns whether the connection made from s can go on: its
// credential is still stored, is good and leads to the same hub.
func (a *Agent) holdsConnection(s *snapshot) func(*snapshot) bool {
	a.held.set(s.fingerprint())
	return func(now *snapshot) bool {
		_, usable := now.usable(a.config.Clock.Now())
		return usable && now.identity == s.identity && now.hub.SameServer(*s.hub) && a.held.contains(now.fingerprint())
	}
}
