package registry

import "github.com/prometheus/client_golang/prometheus"

// RegisterMetrics shows how many hosts there are.
func RegisterMetrics(registry prometheus.Registerer, hosts *Hosts) error {
	return registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ocm_imagepull_hosts",
		Help: "Registry hosts that pull secrets are for; with 0 nothing is written.",
	}, func() float64 { return float64(len(hosts.List())) }))
}
