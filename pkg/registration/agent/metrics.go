package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

// Results of a renewal.
const (
	resultSuccess = "success"
	resultFailure = "failure"
)

type metrics struct {
	expiry   prometheus.Gauge
	renewed  prometheus.Gauge
	phase    *prometheus.GaugeVec
	renewals *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		expiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ocm_agent_credential_expiry_seconds",
			Help: "When the hub credential expires, in seconds since the epoch; 0 while there is none, +Inf if it does not expire.",
		}),
		renewed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ocm_agent_credential_last_renewal_seconds",
			Help: "When this process last obtained a hub credential, in seconds since the epoch.",
		}),
		phase: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ocm_agent_phase",
			Help: "1 for the current phase of the agent, 0 for the others.",
		}, []string{"phase"}),
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ocm_agent_renewals_total",
			Help: "Number of renewals of the hub credential, by result.",
		}, []string{"result"}),
	}
	for _, result := range []string{resultSuccess, resultFailure} {
		m.renewals.WithLabelValues(result)
	}
	for _, c := range []prometheus.Collector{m.expiry, m.renewed, m.phase, m.renewals} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) enter(phase Phase) {
	for _, p := range Phases() {
		value := 0.0
		if p == phase {
			value = 1
		}
		m.phase.WithLabelValues(string(p)).Set(value)
	}
}

// setExpiry reports when the credential expires; the zero Validity means no credential.
func (m *metrics) setExpiry(v credential.Validity) { m.expiry.Set(v.ExpirySeconds()) }
