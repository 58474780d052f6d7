package clocks

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// tick is how often a Moved clock follows real time.
const tick = 20 * time.Millisecond

// Moved is a clock that advances as real time does, so that polling continues, and
// that a test moves forward.
type Moved struct {
	*clocktesting.FakeClock

	// Start is the time that it began with.
	Start time.Time

	mu     sync.Mutex
	timers []timer
}

// timer is a wait that began at a time.
type timer struct {
	at time.Time
	d  time.Duration
}

// NewMoved returns a clock that shows the real time until it is moved.
func NewMoved(tb testing.TB) *Moved {
	tb.Helper()
	wall := clock.RealClock{}
	last := wall.Now()
	c := &Moved{FakeClock: clocktesting.NewFakeClock(last), Start: last}
	ctx, cancel := context.WithCancel(tb.Context())
	var ticking sync.WaitGroup
	ticking.Go(func() {
		for ctx.Err() == nil {
			wall.Sleep(tick)
			now := wall.Now()
			c.Step(now.Sub(last))
			last = now
		}
	})
	tb.Cleanup(func() { cancel(); ticking.Wait() })
	return c
}

// NewTimer implements clock.Clock.
func (c *Moved) NewTimer(d time.Duration) clock.Timer {
	at := c.Now()
	made := c.FakeClock.NewTimer(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = append(c.timers, timer{at, d})
	return made
}

// Waiting reports whether a wait as described began at since or later.
func (c *Moved) Waiting(since time.Time, described func(time.Duration) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.timers {
		if !w.at.Before(since) && described(w.d) {
			return true
		}
	}
	return false
}
