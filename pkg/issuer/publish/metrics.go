package publish

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Results of one look at the cluster's issuer.
const (
	resultPublished = "published"
	resultUnchanged = "unchanged"
	resultFailed    = "failed"
)

// Metrics report the progress of publishing. All publishers of a process, one after the
// other, share one set.
type Metrics struct {
	checks  *prometheus.CounterVec
	keys    prometheus.Gauge
	success prometheus.Gauge
}

// NewMetrics registers the metrics of publishing.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	register := promauto.With(registry)
	m := &Metrics{
		checks: register.NewCounterVec(prometheus.CounterOpts{
			Name: "ocm_issuer_publish_checks_total",
			Help: "How often this cluster's issuer and keys were read, by what came of it: published, unchanged or failed.",
		}, []string{"result"}),
		keys: register.NewGauge(prometheus.GaugeOpts{
			Name: "ocm_issuer_published_keys",
			Help: "Public keys of this cluster that the hub was last shown.",
		}),
		success: register.NewGauge(prometheus.GaugeOpts{
			Name: "ocm_issuer_publish_last_success_seconds",
			Help: "When the hub last held what this cluster serves, in seconds since the epoch; 0 for never.",
		}),
	}
	for _, result := range []string{resultPublished, resultUnchanged, resultFailed} {
		m.checks.WithLabelValues(result)
	}
	return m
}

func (m *Metrics) succeeded(result string, keys int, now time.Time) {
	m.checks.WithLabelValues(result).Inc()
	m.keys.Set(float64(keys))
	m.success.Set(float64(now.Unix()))
}

func (m *Metrics) failed() { m.checks.WithLabelValues(resultFailed).Inc() }
