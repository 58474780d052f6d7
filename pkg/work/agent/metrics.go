package agent

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of applying a manifest.
const (
	resultSuccess = "success"
	resultFailure = "failure"
)

// metrics reports what the agent does.
type metrics struct {
	applies *prometheus.CounterVec
	repairs prometheus.Counter
	failing prometheus.Gauge
	hub     prometheus.Gauge

	mu     sync.Mutex
	failed map[string]bool
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		applies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ocm_work_applies_total",
			Help: "Number of times a manifest was applied because it or its object had changed, by result.",
		}, []string{"result"}),
		repairs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ocm_work_repairs_total",
			Help: "Number of objects that another writer had changed, and that were brought back to their manifest.",
		}),
		failing: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ocm_work_failing",
			Help: "Number of ManifestWorks with a manifest that cannot be applied.",
		}),
		hub: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ocm_work_hub_connected",
			Help: "1 while the agent knows the ManifestWorks of its hub, else 0.",
		}),
		failed: map[string]bool{},
	}
	for _, result := range []string{resultSuccess, resultFailure} {
		m.applies.WithLabelValues(result)
	}
	for _, c := range []prometheus.Collector{m.applies, m.repairs, m.failing, m.hub} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// applied counts one attempt to apply a manifest.
func (m *metrics) applied(err error) {
	result := resultSuccess
	if err != nil {
		result = resultFailure
	}
	m.applies.WithLabelValues(result).Inc()
}

// report notes that a work has, or does not have, manifests that cannot be applied.
func (m *metrics) report(work string, failing int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.failed, work)
	if failing > 0 {
		m.failed[work] = true
	}
	m.failing.Set(float64(len(m.failed)))
}

// connected notes that the works of a hub are known, until the function that it returns
// is called: then none are.
func (m *metrics) connected() (ended func()) {
	m.hub.Set(1)
	return func() {
		m.hub.Set(0)
		m.mu.Lock()
		defer m.mu.Unlock()
		clear(m.failed)
		m.failing.Set(0)
	}
}
