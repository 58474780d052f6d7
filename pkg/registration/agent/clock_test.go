package agent_test

import (
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/clocks"
)

// moveClock gives the next agents a clock that the test moves.
func (s *spoke) moveClock(t *testing.T) *clocks.Moved {
	t.Helper()
	c := clocks.NewMoved(t)
	s.config.Clock = c
	return c
}

// The agent looks at its credential every ten minutes until it is due. An
// add-on's credential is looked at again when it is due, or after a day.

func clusterRests(d time.Duration) bool { return d == 10*time.Minute }

func addOnRests(d time.Duration) bool { return d > 10*time.Minute && d <= 24*time.Hour }

// awaitRest waits until the agent, with its clock at since or later, found its
// certificate good.
func (s *spoke) awaitRest(t *testing.T, c *clocks.Moved, since time.Time) {
	t.Helper()
	eventually(t, "the agent to rest", func() (bool, error) { return c.Waiting(since, clusterRests), nil })
}

// fallDue moves the clock to where the agent's certificate has to be renewed.
func (s *spoke) fallDue(t *testing.T, c *clocks.Moved) {
	t.Helper()
	s.awaitRest(t, c, c.Start)
	c.SetTime(at(s.certificate(t, names.HubKubeconfigSecret), 0.8))
}
