package trust

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// metrics count the clusters that publish, by what is said of them.
type metrics struct {
	clusters *prometheus.GaugeVec

	mu      sync.Mutex
	reasons map[string]string
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		reasons: map[string]string{},
		clusters: promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
			Name: "ocm_issuer_clusters",
			Help: "Clusters whose token issuer is evaluated, by the reason of their condition IssuerTrusted.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{names.ReasonKeysTrusted, names.ReasonKeysShared, names.ReasonKeysInvalid, names.ReasonKeysUnproven, names.ReasonClusterNotAccepted} {
		m.clusters.WithLabelValues(reason)
	}
	return m
}

// is notes what is said of a cluster; an empty reason is nothing.
func (m *metrics) is(cluster, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was := m.reasons[cluster]; was != "" {
		m.clusters.WithLabelValues(was).Dec()
	}
	delete(m.reasons, cluster)
	if reason != "" {
		m.reasons[cluster] = reason
		m.clusters.WithLabelValues(reason).Inc()
	}
}
