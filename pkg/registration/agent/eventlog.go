package agent

import (
	"sync"

	"github.com/go-logr/logr"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// eventLog combines what the parts of the agent report independently into one Report,
// logs it, and signals its changes.
type eventLog struct {
	log     logr.Logger
	metrics *metrics
	changed wakeup

	mu       sync.Mutex
	base     Report
	renewing bool
	trouble  Condition
	last     Report
}

func newEventLog(log logr.Logger, m *metrics) *eventLog {
	return &eventLog{log: log, metrics: m, changed: newWakeup()}
}

// report sets the phase of the agent. Phases other than Running end a renewal and
// resolve a trouble with the hub.
func (l *eventLog) report(r Report) {
	l.update(func() {
		if r.Phase != Running {
			l.renewing, l.trouble = false, Condition{}
		}
		l.base = r
	})
}

// setRenewing sets whether a new credential is being obtained while the agent runs.
func (l *eventLog) setRenewing(on bool) { l.update(func() { l.renewing = on }) }

// setTrouble sets the problem of the running connection, empty for none.
func (l *eventLog) setTrouble(c Condition) { l.update(func() { l.trouble = c }) }

func (l *eventLog) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	now := l.base
	if now.Phase == Running && l.renewing {
		now.Phase = Renewing
	}
	if now.Phase == Running || now.Phase == Renewing {
		now.Hub = l.trouble
	}
	if now == l.last {
		return
	}
	l.log.Info("State of the agent changed", "phase", now.Phase, "reason", now.Hub.Reason, "message", now.Hub.Message, "bootstrap", now.Bootstrap.Message)
	l.last = now
	l.metrics.enter(now.Phase)
	l.changed.signal()
}

// current returns the last Report.
func (l *eventLog) current() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// functional is the bootstrap condition of a report without a known problem of the
// bootstrap kubeconfig.
func functional() Condition {
	return Condition{Reason: names.ReasonBootstrapSecretFunctional, Message: "the bootstrap kubeconfig is valid"}
}
