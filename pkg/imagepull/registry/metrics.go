package registry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// RegisterMetrics shows how many hosts there are.
func RegisterMetrics(registry prometheus.Registerer, hosts *Hosts) {
	promauto.With(registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ocm_imagepull_hosts",
		Help: "Number of registry hosts in pull secrets; with 0 no pull secret is written.",
	}, func() float64 { return float64(len(hosts.List())) })
}
