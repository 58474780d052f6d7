package extauthz

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reporter is the reporter of a replica, for tests.
type Reporter struct{ *reporter }

// NewReporter returns one.
func NewReporter(c client.Client, clock clock.WithTicker) Reporter {
	r := newReporter(clock)
	r.client = c
	return Reporter{r}
}

// Count counts a decision.
func (r Reporter) Count(cluster string, err error) { r.count(cluster, err) }

// Flush reports what is due.
func (r Reporter) Flush(ctx context.Context) { r.flush(ctx) }

// What bounds the writes.
const (
	ReportEvery = reportEvery
	MaxReports  = maxReports
)
