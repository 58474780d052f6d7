package agent_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// movedClock is a clock that goes on as real time does, so that whatever polls
// goes on, and that a test moves forward. It knows who waits for it.
type movedClock struct {
	*clocktesting.FakeClock

	// start is the time that it began with.
	start time.Time

	mu     sync.Mutex
	timers []timer
}

// timer is a wait that began at a time.
type timer struct {
	at time.Time
	d  time.Duration
}

// moveClock gives the next agents a clock that shows the real time until it is moved.
func (s *spoke) moveClock(t *testing.T) *movedClock {
	t.Helper()
	last := now()
	c := &movedClock{FakeClock: clocktesting.NewFakeClock(last), start: last}
	ctx, cancel := context.WithCancel(t.Context())
	var ticking sync.WaitGroup
	ticking.Go(func() {
		for ctx.Err() == nil {
			<-after(20 * time.Millisecond)
			present := now()
			c.Step(present.Sub(last))
			last = present
		}
	})
	t.Cleanup(func() { cancel(); ticking.Wait() })
	s.config.Clock = c
	return c
}

// NewTimer implements clock.Clock.
func (c *movedClock) NewTimer(d time.Duration) clock.Timer {
	at := c.Now()
	made := c.FakeClock.NewTimer(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = append(c.timers, timer{at, d})
	return made
}

// waiting reports whether a wait as described began at since or later.
func (c *movedClock) waiting(since time.Time, described func(time.Duration) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.timers {
		if !w.at.Before(since) && described(w.d) {
			return true
		}
	}
	return false
}

// The agent looks at its credential every ten minutes until it is due. An
// add-on's credential is looked at again when it is due, or after a day.

func clusterRests(d time.Duration) bool { return d == 10*time.Minute }

func addOnRests(d time.Duration) bool { return d > 10*time.Minute && d <= 24*time.Hour }

// awaitRest waits until the agent, with its clock at since or later, found its
// certificate good.
func (s *spoke) awaitRest(t *testing.T, c *movedClock, since time.Time) {
	t.Helper()
	eventually(t, "the agent to rest", func() (bool, error) { return c.waiting(since, clusterRests), nil })
}

// fallDue moves the clock to where the agent's certificate has to be renewed.
func (s *spoke) fallDue(t *testing.T, c *movedClock) {
	t.Helper()
	s.awaitRest(t, c, c.start)
	c.SetTime(at(s.certificate(t, names.HubKubeconfigSecret), 0.8))
}
