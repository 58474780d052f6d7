package tokeninfra

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics reports how much of the token infrastructure is ready, and what is not.
type Metrics struct {
	ready    prometheus.Gauge
	notReady *prometheus.GaugeVec

	mu sync.Mutex
	// seen is the reason why an add-on is not ready, empty for one that is.
	seen map[types.NamespacedName]string
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		ready: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ocm_addon_token_infrastructure_ready",
			Help: "Number of add-ons whose token infrastructure is ready.",
		}),
		notReady: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ocm_addon_token_infrastructure_not_ready",
			Help: "1 for each add-on that registers with tokens and whose token infrastructure is not ready, by the reason in its condition.",
		}, []string{"cluster", "addon", "reason"}),
		seen: map[types.NamespacedName]string{},
	}
	for _, c := range []prometheus.Collector{m.ready, m.notReady} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// observe notes what is said of an add-on; nil is nothing.
func (m *Metrics) observe(addOn types.NamespacedName, condition *metav1.Condition) {
	m.forget(addOn)
	if condition == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if condition.Status == metav1.ConditionTrue {
		m.seen[addOn] = ""
		m.ready.Inc()
		return
	}
	m.seen[addOn] = condition.Reason
	m.notReady.WithLabelValues(addOn.Namespace, addOn.Name, condition.Reason).Set(1)
}

// forget drops an add-on that needs no token infrastructure any more.
func (m *Metrics) forget(addOn types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reason, ok := m.seen[addOn]
	switch {
	case !ok:
		return
	case reason == "":
		m.ready.Dec()
	default:
		m.notReady.DeleteLabelValues(addOn.Namespace, addOn.Name, reason)
	}
	delete(m.seen, addOn)
}
