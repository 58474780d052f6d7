package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// troubleGrace is how long the hub must be unreachable before that is reported: a
// restart of its API server is shorter.
const troubleGrace = 30 * time.Second

// reach evaluates whether the hub can be reached, from the renewals of the lease and
// the probes.
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
		// The hub responded and accepts the credential.
		if !r.failingSince.IsZero() {
			r.agent.eventLog.setTrouble(Condition{})
		}
		r.failingSince = time.Time{}
		return
	case apierrors.IsUnauthorized(err):
		if now.Sub(r.refusedSince) >= unauthorizedGrace {
			r.end(errRefused)
		}
		return
	case errors.Is(err, context.DeadlineExceeded):
		r.reset()
	}
	if r.failingSince.IsZero() {
		r.failingSince = now
	}
	if now.Sub(r.failingSince) >= troubleGrace {
		r.agent.eventLog.setTrouble(Condition{names.ReasonHubKubeConfigError, fmt.Sprintf("the hub at %s has been unreachable since %s: %v", r.server, credential.Timestamp(r.failingSince), errors.Unwrap(err))})
	}
}
