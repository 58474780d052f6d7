package serviceaccount

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics shows what is in the way.
type Metrics struct {
	contended prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	return &Metrics{contended: promauto.With(registry).NewGauge(prometheus.GaugeOpts{
		Name: "ocm_imagepull_contended",
		Help: "Number of ServiceAccounts whose pull secret is not listed because another manager keeps removing it.",
	})}
}

func (m *Metrics) observe(c *contention) { m.contended.Set(float64(c.stopped())) }
