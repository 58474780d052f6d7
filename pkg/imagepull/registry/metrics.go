package registry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
)

// Metrics shows the list of hosts.
type Metrics struct {
	hosts prometheus.Gauge
}

// NewMetrics registers the metrics, beginning with a list.
func NewMetrics(registry prometheus.Registerer, hosts []content.Host) (*Metrics, error) {
	m := &Metrics{hosts: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ocm_imagepull_hosts",
		Help: "Registry hosts that pull secrets are for; with 0 nothing is written.",
	})}
	m.observe(hosts)
	return m, registry.Register(m.hosts)
}

func (m *Metrics) observe(hosts []content.Host) { m.hosts.Set(float64(len(hosts))) }
