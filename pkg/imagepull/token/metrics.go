package token

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

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
func NewMetrics(registry prometheus.Registerer) *Metrics {
	register := promauto.With(registry)
	return &Metrics{
		registerer: registry,
		refreshes: register.NewCounterVec(prometheus.CounterOpts{
			Name: "ocm_imagepull_refresh_total",
			Help: "Number of token requests for pull secrets, by reason and result: succeeded or failed.",
		}, []string{"reason", "result"}),
		orphans: register.NewCounter(prometheus.CounterOpts{
			Name: "ocm_imagepull_orphans_deleted_total",
			Help: "Number of pull secrets that were deleted because their ServiceAccount is gone.",
		}),
		requests: register.NewHistogram(prometheus.HistogramOpts{
			Name:    "ocm_imagepull_token_request_duration_seconds",
			Help:    "Duration of token requests.",
			Buckets: prometheus.ExponentialBuckets(0.002, 4, 8),
		}),
	}
}

func (m *Metrics) refreshed(reason credential.Reason, err error) {
	result := "succeeded"
	if err != nil {
		result = "failed"
	}
	m.refreshes.WithLabelValues(string(reason), result).Inc()
}
