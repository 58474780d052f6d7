package controller

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/resident"
)

// trimmer gives back the memory that only the start of a role needed, after it
// has connected and when it has settled.
type trimmer struct {
	clock clock.Clock
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: who waits for
// the lease has started as well.
func (trimmer) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (t trimmer) Start(ctx context.Context) error {
	for _, wait := range []time.Duration{10 * time.Second, 50 * time.Second} {
		select {
		case <-ctx.Done():
			return nil
		case <-t.clock.After(wait):
			trim()
		}
	}
	return nil
}

// trim gives back the memory that was needed until now.
func trim() {
	if err := resident.Trim(); err != nil {
		klog.Background().V(1).Info("Keeping the memory of the start", "reason", err.Error())
	}
}

// thriftyGC is how much the heap of an agent, or of the add-on manager, may grow
// between collections, in percent. Their work comes in bursts that leave little
// behind, and managed clusters can be small: memory matters more than the CPU
// time, which is a tenth of a second for a hundred add-ons.
const thriftyGC = 40

// thrifty makes the garbage collector work more for less memory, unless the
// environment says what it should do.
func thrifty() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(thriftyGC)
	}
}
