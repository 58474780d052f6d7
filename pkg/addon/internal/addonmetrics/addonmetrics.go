package addonmetrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Readiness reports how many add-ons are ready, and which are not.
type Readiness struct {
	ready    prometheus.Gauge
	notReady *prometheus.GaugeVec

	mu sync.Mutex
	// seen is the reason why an add-on is not ready, empty for one that is.
	seen map[types.NamespacedName]string
}

// New registers the number of those that are ready, and one metric for each that is not.
func New(registry prometheus.Registerer, ready, notReady prometheus.GaugeOpts) (*Readiness, error) {
	r := &Readiness{
		ready:    prometheus.NewGauge(ready),
		notReady: prometheus.NewGaugeVec(notReady, []string{"cluster", "addon", "reason"}),
		seen:     map[types.NamespacedName]string{},
	}
	for _, c := range []prometheus.Collector{r.ready, r.notReady} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Observe notes what is said of an add-on; nil is nothing.
func (r *Readiness) Observe(addOn types.NamespacedName, condition *metav1.Condition) {
	r.Forget(addOn)
	if condition == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if condition.Status == metav1.ConditionTrue {
		r.seen[addOn] = ""
		r.ready.Inc()
		return
	}
	r.seen[addOn] = condition.Reason
	r.notReady.WithLabelValues(addOn.Namespace, addOn.Name, condition.Reason).Set(1)
}

// Forget drops an add-on that does not count any more.
func (r *Readiness) Forget(addOn types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reason, ok := r.seen[addOn]
	switch {
	case !ok:
		return
	case reason == "":
		r.ready.Dec()
	default:
		r.notReady.DeleteLabelValues(addOn.Namespace, addOn.Name, reason)
	}
	delete(r.seen, addOn)
}
