package tokeninfra

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonmetrics"
)

// NewMetrics registers how much of the token infrastructure is ready, and what is not.
func NewMetrics(registry prometheus.Registerer) (*addonmetrics.Readiness, error) {
	return addonmetrics.New(registry, prometheus.GaugeOpts{
		Name: "ocm_addon_token_infrastructure_ready",
		Help: "Number of add-ons whose token infrastructure is ready.",
	}, prometheus.GaugeOpts{
		Name: "ocm_addon_token_infrastructure_not_ready",
		Help: "1 for each add-on that registers with tokens and whose token infrastructure is not ready, by the reason in its condition.",
	})
}
