package signer

import "github.com/prometheus/client_golang/prometheus"

// Metrics shows how reading the key set goes.
type Metrics struct {
	reads *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{reads: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ocm_imagepull_signing_key_reads_total",
		Help: "Number of reads of the cluster's published signing keys, by result: succeeded or failed.",
	}, []string{"result"})}
	for _, result := range []string{"succeeded", "failed"} {
		m.reads.WithLabelValues(result)
	}
	return m, registry.Register(m.reads)
}

func (m *Metrics) observe(err error) {
	result := "succeeded"
	if err != nil {
		result = "failed"
	}
	m.reads.WithLabelValues(result).Inc()
}
