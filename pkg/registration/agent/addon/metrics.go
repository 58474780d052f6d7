package addon

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

// Results of a renewal.
const (
	resultSuccess = "success"
	resultFailure = "failure"
)

// Metrics are the metrics of the credentials of add-ons, shared by all connections of
// a process.
type Metrics struct {
	expiry   *prometheus.GaugeVec
	renewal  *prometheus.GaugeVec
	renewals *prometheus.CounterVec

	mu sync.Mutex
	// series are the labels in use, by add-on and Secret.
	series map[string]map[string]prometheus.Labels
}

// NewMetrics registers metrics with registry.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	one := []string{"addon", "driver", "registration"}
	m := &Metrics{
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ocm_addon_credential_expiry_seconds",
			Help: "When the credential of an add-on expires, in seconds since the epoch.",
		}, one),
		renewal: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ocm_addon_credential_last_renewal_seconds",
			Help: "When the credential of an add-on was obtained, in seconds since the epoch.",
		}, one),
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ocm_addon_renewals_total",
			Help: "Number of renewals of add-on credentials, by result and by the reason for the renewal or the failure.",
		}, append(one, "result", "reason")),
		series: map[string]map[string]prometheus.Labels{},
	}
	for _, c := range []prometheus.Collector{m.expiry, m.renewal, m.renewals} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// labels returns the labels of a registration. After a change of the driver it removes
// the series with the former labels.
func (m *Metrics) labels(addOn string, it *item) prometheus.Labels {
	labels := prometheus.Labels{"addon": addOn, "driver": it.driverName(), "registration": it.label()}
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.series[addOn]
	if !ok {
		known = map[string]prometheus.Labels{}
		m.series[addOn] = known
	}
	if former, ok := known[it.secret.Name]; ok && former["driver"] != labels["driver"] {
		m.remove(former)
	}
	known[it.secret.Name] = labels
	return labels
}

func (m *Metrics) remove(labels prometheus.Labels) {
	m.expiry.DeletePartialMatch(labels)
	m.renewal.DeletePartialMatch(labels)
	m.renewals.DeletePartialMatch(labels)
}

// setCredential reports the stored credential of a registration.
func (m *Metrics) setCredential(addOn string, it *item, v credential.Validity, obtained time.Time) {
	labels := m.labels(addOn, it)
	m.expiry.With(labels).Set(v.ExpirySeconds())
	m.renewal.With(labels).Set(float64(obtained.Unix()))
}

func (m *Metrics) count(addOn string, it *item, result, reason string) {
	counter, err := m.renewals.CurryWith(m.labels(addOn, it))
	if err != nil {
		return // The labels are those of the vector.
	}
	counter.WithLabelValues(result, reason).Inc()
}

// drop removes the series of one registration, by its Secret.
func (m *Metrics) drop(addOn, secret string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if labels, ok := m.series[addOn][secret]; ok {
		m.remove(labels)
		delete(m.series[addOn], secret)
	}
}

// forget removes the series of an add-on.
func (m *Metrics) forget(addOn string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(prometheus.Labels{"addon": addOn})
	delete(m.series, addOn)
}
