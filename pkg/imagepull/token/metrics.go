package token

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

// Metrics counts what is done.
type Metrics struct {
	registerer prometheus.Registerer

	refreshes *prometheus.CounterVec
	orphans   prometheus.Counter
	requests  prometheus.Histogram
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		registerer: registry,
		refreshes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ocm_imagepull_refresh_total",
			Help: "Number of token requests for pull secrets, by reason and result: succeeded or failed.",
		}, []string{"reason", "result"}),
		orphans: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ocm_imagepull_orphans_deleted_total",
			Help: "Number of pull secrets that were deleted because their ServiceAccount is gone.",
		}),
		requests: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ocm_imagepull_token_request_duration_seconds",
			Help:    "Duration of token requests.",
			Buckets: prometheus.ExponentialBuckets(0.002, 4, 8),
		}),
	}
	for _, c := range []prometheus.Collector{m.refreshes, m.orphans, m.requests} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) refreshed(reason credential.Reason, err error) {
	result := "succeeded"
	if err != nil {
		result = "failed"
	}
	m.refreshes.WithLabelValues(string(reason), result).Inc()
}
