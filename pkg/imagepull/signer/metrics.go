package signer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics reports reads of the key set.
type Metrics struct {
	reads *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{reads: promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "ocm_imagepull_signing_key_reads_total",
		Help: "Number of reads of the cluster's published signing keys, by result: succeeded or failed.",
	}, []string{"result"})}
	for _, result := range []string{"succeeded", "failed"} {
		m.reads.WithLabelValues(result)
	}
	return m
}

func (m *Metrics) observe(err error) {
	result := "succeeded"
	if err != nil {
		result = "failed"
	}
	m.reads.WithLabelValues(result).Inc()
}
