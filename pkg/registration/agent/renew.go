package agent

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// maxSleep bounds a wait for the renewal time: timers do not advance while a machine is
// suspended.
const maxSleep = 10 * time.Minute

// renewCredential renews the credential whenever it is due, and ends the connection
// when it expires. It returns when ctx ends.
func (c *connected) renewCredential(ctx context.Context) {
	clock := c.agent.config.Clock
	for failures := 0; ctx.Err() == nil; {
		facts := c.snapshot.facts
		if facts.Validity.Unlimited {
			<-ctx.Done()
			return
		}
		need, due := credential.Due().Evaluate(facts, clock.Now())
		switch {
		case need.Reason == credential.Expired:
			c.end(errExpired)
			return
		case !due:
			pause.For(ctx, clock, min(facts.RenewAt.Sub(clock.Now()), maxSleep))
			continue
		}
		err := c.renew(ctx, need)
		if err == nil {
			failures = 0
			continue
		}
		failures++
		retry := credential.Backoff{First: 5 * time.Second, Most: 5 * time.Minute}.Delay(failures, c.snapshot.identity.Cluster)
		pause.For(ctx, clock, min(retry, max(facts.Validity.NotAfter.Sub(clock.Now()), 0)))
	}
}

// renew obtains a new credential with the old one, until that expires.
func (c *connected) renew(ctx context.Context, need credential.Need) error {
	a := c.agent
	a.events.normal(names.EventRotationStarted, "Renew", "%s", need.Message)
	a.eventLog.setRenewing(true)
	defer a.eventLog.setRenewing(false)
	end := c.snapshot.facts.Validity.NotAfter
	expired := func(ctx context.Context) error {
		if pause.For(ctx, a.config.Clock, end.Sub(a.config.Clock.Now())) {
			return errExpired
		}
		return nil
	}
	return until(ctx, expired, c.replace)
}

// replace obtains a new credential and makes the connection use it without an
// interruption.
func (c *connected) replace(ctx context.Context) error {
	a := c.agent
	// A renewal that waits without a failure is not reported.
	o := &obtaining{agent: a, snapshot: c.snapshot, hub: c.hub, kubeconfig: *c.snapshot.hub, purpose: renewal, waits: func(Condition) {}, fails: c.reportFailure}
	issued, err := o.run(ctx)
	if err != nil {
		return err
	}
	data, err := c.snapshot.hubData(*c.snapshot.hub, issued.Data)
	if err != nil {
		return err
	}
	// From here on the Secret may have either credential, both of this agent.
	a.stored.set(c.snapshot.fingerprint(), c.snapshot.driver.Fingerprint(data))
	if err := a.storeCredential(ctx, c.snapshot, data, issued); err != nil {
		return err // The request is still pending: a retry finds the issued credential.
	}
	c.snapshot = c.snapshot.with(data, &a.stored)
	if err := c.conn.Reload(data); err != nil {
		return err
	}
	c.credential.valid(c.snapshot)
	a.facts.signal()
	return nil
}

// reportFailure reports a failed renewal on the hub.
func (c *connected) reportFailure(failure Condition) {
	c.agent.log.Info("Failed to renew the hub credential", "reason", failure.Reason, "message", failure.Message)
	c.credential.failed(c.snapshot, failure)
	c.agent.facts.signal()
}

// credentialCondition is the condition that reports the credential, if its driver has
// one. The status reconciler writes it.
type credentialCondition struct {
	mu        sync.Mutex
	condition *metav1.Condition
}

func (c *credentialCondition) get() *metav1.Condition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.condition.DeepCopy()
}

func (c *credentialCondition) set(report driver.Report, status metav1.ConditionStatus, why driver.Waiting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.condition = &metav1.Condition{Type: report.Conditions[0], Status: status, Reason: why.Reason, Message: why.Message}
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
