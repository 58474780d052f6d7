package mint

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/metric"
)

// metrics are the metrics of the exchange.
type metrics struct {
	total   *prometheus.CounterVec
	hits    prometheus.Counter
	misses  prometheus.Counter
	renewed prometheus.Counter
	evicted prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	total, errTotal := metric.Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: metric.Prefix + "exchange_total", Help: "Attempts to mint a token, by reason of failure or minted.",
	}, []string{"cluster", "result"}))
	cache, errCache := metric.Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: metric.Prefix + "exchange_cache", Help: "What happened to kept tokens.",
	}, []string{"event"}))
	return &metrics{
		total:   total,
		hits:    cache.WithLabelValues("hit"),
		misses:  cache.WithLabelValues("miss"),
		renewed: cache.WithLabelValues("renewed"),
		evicted: cache.WithLabelValues("evicted"),
	}, errors.Join(errTotal, errCache)
}

func (m *metrics) minted(cluster string, err error) {
	result := "minted"
	if err != nil {
		result = string(denial.Of(err).Reason)
	}
	m.total.WithLabelValues(cluster, result).Inc()
}
