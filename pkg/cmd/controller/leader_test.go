//go:build linux

package controller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/controller"
)

// leaseLog is a lock that remembers what was written to it.
type leaseLog struct {
	resourcelock.Interface
	fail    error
	written []resourcelock.LeaderElectionRecord
}

// Update implements resourcelock.Interface.
func (l *leaseLog) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.fail == nil {
		l.written = append(l.written, record)
	}
	return l.fail
}

// TestLeaseIsRenewedSparingly: renewals are tried often and written seldom; to
// take the lease, to release it and to mend a failure is written at once.
func TestLeaseIsRenewedSparingly(t *testing.T) {
	t.Parallel()
	log := &leaseLog{}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	lock := controller.Sparing(log, 10*time.Second, clock)
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaderTransitions: 3}
	for _, step := range []struct {
		what    string
		after   time.Duration
		record  resourcelock.LeaderElectionRecord
		fail    error
		written int
	}{
		{what: "taken", record: mine, written: 1},
		{what: "renewed too soon", after: 2 * time.Second, record: mine, written: 1},
		{what: "renewed just too soon", after: 8*time.Second - 1, record: mine, written: 1},
		{what: "renewed", after: 1, record: mine, written: 2},
		{what: "not renewed, the server is away", after: 10 * time.Second, record: mine, fail: errors.New("away"), written: 2},
		{what: "renewed as soon as the server is back", after: 1, record: mine, written: 3},
		{what: "released at once", after: 1, record: resourcelock.LeaderElectionRecord{LeaderTransitions: 3}, written: 4},
		{what: "taken again at once", after: 1, record: resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaderTransitions: 4}, written: 5},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		log.fail = step.fail
		if err := lock.Update(t.Context(), step.record); !errors.Is(err, step.fail) {
			t.Errorf("%s: %v", step.what, err)
		}
		if len(log.written) != step.written {
			t.Errorf("%s: %d writes, want %d", step.what, len(log.written), step.written)
		}
	}
}
