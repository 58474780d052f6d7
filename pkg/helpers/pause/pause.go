package pause

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// For waits for d, or until ctx is done, and reports whether ctx is still active.
func For(ctx context.Context, clk clock.Clock, d time.Duration) bool {
	timer := clk.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
