package agent

import (
	"sync"

	"github.com/go-logr/logr"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// journal holds what the agent tells about itself. The parts of the agent
// report into it independently; it makes one Report of that, logs changes and
// rings when the Report is another one.
type journal struct {
	log     logr.Logger
	metrics *metrics
	changed bell

	mu       sync.Mutex
	base     Report
	renewing bool
	trouble  Condition
	told     Report
}

func newJournal(log logr.Logger, m *metrics) *journal {
	return &journal{log: log, metrics: m, changed: newBell()}
}

// report says where the agent is. It ends any renewal and trouble with the hub
// unless the agent stays in Running.
func (j *journal) report(r Report) {
	j.update(func() {
		if r.Phase != Running {
			j.renewing, j.trouble = false, Condition{}
		}
		j.base = r
	})
}

// renews says whether a new credential is being obtained while the agent runs.
func (j *journal) renews(on bool) { j.update(func() { j.renewing = on }) }

// suffers says what is wrong with the running connection, nothing if empty.
func (j *journal) suffers(c Condition) { j.update(func() { j.trouble = c }) }

func (j *journal) update(change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
	now := j.base
	if now.Phase == Running && j.renewing {
		now.Phase = Renewing
	}
	if now.Phase == Running || now.Phase == Renewing {
		now.Hub = j.trouble
	}
	if now == j.told {
		return
	}
	j.log.Info("Agent is waiting or working", "phase", now.Phase, "reason", now.Hub.Reason, "message", now.Hub.Message, "bootstrap", now.Bootstrap.Message)
	j.told = now
	j.metrics.enter(now.Phase)
	j.changed.ring()
}

// current returns the last Report.
func (j *journal) current() Report {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.told
}

// functional is the bootstrap half of a report while nothing is known to be
// wrong with the bootstrap kubeconfig.
func functional() Condition {
	return Condition{Reason: names.ReasonBootstrapSecretFunctional, Message: "the bootstrap kubeconfig works"}
}
