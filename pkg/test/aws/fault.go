package aws

import (
	"net/http"
	"time"
)

// FaultKind is how a call fails.
type FaultKind int

const (
	// Throttled answers that there were too many calls; nothing happens.
	Throttled FaultKind = iota
	// Broken answers with an internal error; nothing happens.
	Broken
	// Lost executes the request and then answers with an internal error.
	Lost
	// Cut executes the request and then closes the connection.
	Cut
	// Silent reads the request, does nothing and never answers.
	Silent
)

// Fault says which calls fail, and how.
type Fault struct {
	// Operation is the operation that fails, such as "CreateRole"; "" is every one.
	Operation string
	// Kind is how they fail.
	Kind FaultKind
	// Skip is how many calls pass first.
	Skip int
	// Times is how many calls fail; 0 is all until Heal. The SDK attempts a
	// call three times before it gives up.
	Times int
}

// Injection is a fault in force.
type Injection struct {
	cloud *Cloud
	fault Fault
	seen  int
	over  bool
}

// Inject puts a fault into force. Of several that fit a call, the first counts.
func (c *Cloud) Inject(f Fault) *Injection {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := &Injection{cloud: c, fault: f}
	c.injections = append(c.injections, i)
	return i
}

// Heal ends the fault.
func (i *Injection) Heal() {
	i.cloud.mu.Lock()
	defer i.cloud.mu.Unlock()
	i.over = true
}

// Hits is how many calls failed by it.
func (i *Injection) Hits() int {
	i.cloud.mu.Lock()
	defer i.cloud.mu.Unlock()
	hits := max(i.seen-i.fault.Skip, 0)
	if i.fault.Times > 0 {
		hits = min(hits, i.fault.Times)
	}
	return hits
}

// faultFor is how a call of operation fails, or nil.
func (c *Cloud) faultFor(operation string) *Fault {
	for _, i := range c.injections {
		if i.over || (i.fault.Operation != "" && i.fault.Operation != operation) {
			continue
		}
		i.seen++
		if i.seen > i.fault.Skip && (i.fault.Times == 0 || i.seen <= i.fault.Skip+i.fault.Times) {
			return &i.fault
		}
	}
	return nil
}

// before is the answer of a fault whose call has no effect.
func (f *Fault) before() error {
	switch {
	case f == nil:
		return nil
	case f.Kind == Throttled:
		return fail(http.StatusBadRequest, "Throttling", "Rate exceeded")
	case f.Kind == Broken:
		return fail(http.StatusInternalServerError, "InternalFailure", "injected before the effect")
	default:
		return nil
	}
}

// after is the answer of a fault whose call had its effect.
func (f *Fault) after() error {
	if f != nil && f.Kind == Lost {
		return fail(http.StatusInternalServerError, "InternalFailure", "injected after the effect")
	}
	return nil
}

// propagation is how long what IAM wrote stays unseen by STS and EKS.
type propagation struct {
	calls int
	delay time.Duration
}

// sight is the time when a write becomes visible.
type sight struct {
	after int
	at    time.Time
}

// Propagation has STS and EKS see new roles and new trust policies only after so
// many further calls of any client and after Advance moved the time by delay. IAM
// itself always sees them.
//
// Source: "Changes that I make are not always immediately visible" in
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html
func (c *Cloud) Propagation(calls int, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.propagation = propagation{calls, delay}
}

// written is the sight of what the current call writes.
func (c *Cloud) written() sight {
	s := sight{after: c.answered + c.propagation.calls}
	if c.propagation.delay > 0 {
		s.at = c.now().Add(c.propagation.delay)
	}
	return s
}

func (c *Cloud) sees(s sight) bool { return c.answered >= s.after && !c.now().Before(s.at) }
