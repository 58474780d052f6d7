package clocks_test

import (
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/clocks"
)

func TestMoved(t *testing.T) {
	t.Parallel()
	c := clocks.NewMoved(t)
	soon, later := c.NewTimer(50*time.Millisecond), c.NewTimer(time.Hour)
	<-soon.C() // By itself, ...
	to := c.Start.Add(time.Hour)
	if c.Waiting(to, func(time.Duration) bool { return true }) {
		t.Error("somebody waits since a time that has not come")
	}
	c.SetTime(to)
	<-later.C() // ... and when it is moved.
	if !c.Waiting(c.Start, func(d time.Duration) bool { return d == time.Hour }) {
		t.Error("it does not know who waited for it")
	}
}
