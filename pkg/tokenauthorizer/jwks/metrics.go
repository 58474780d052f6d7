package jwks

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/metric"
)

// Labels and results.
const (
	labelCluster  = "cluster"
	resultSuccess = "success"
	resultFailure = "failure"
)

// tally counts what happens to clusters.
type tally struct {
	reads, missed *prometheus.CounterVec
}

func newTally() tally {
	return tally{
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metric.Prefix + "key_refresh_total", Help: "How often the cluster's keys were read, by result.",
		}, []string{labelCluster, "result"}),
		missed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metric.Prefix + "unknown_kid_total", Help: "Tokens of the cluster's issuer that were refused because their key id is not known.",
		}, []string{labelCluster}),
	}
}

func (t tally) refreshed(cluster string, err error) {
	result := resultSuccess
	if err != nil {
		result = resultFailure
	}
	t.reads.WithLabelValues(cluster, result).Inc()
}

// forget drops the counts of a cluster that is not known any more.
func (t tally) forget(cluster string) {
	own := prometheus.Labels{labelCluster: cluster}
	t.reads.DeletePartialMatch(own)
	t.missed.DeletePartialMatch(own)
}

// Metrics returns the metrics of s, to be registered once. Their label cluster
// holds only names that are configured or published.
func (s *Store) Metrics() prometheus.Collector {
	return &collector{
		store:   s,
		keys:    prometheus.NewDesc(metric.Prefix+"keys", "Keys of the cluster that are used.", []string{labelCluster}, nil),
		success: prometheus.NewDesc(metric.Prefix+"key_last_success_timestamp_seconds", "When the cluster's keys were last read successfully.", []string{labelCluster}, nil),
	}
}

type collector struct {
	store         *Store
	keys, success *prometheus.Desc
}

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- c.keys
	out <- c.success
	c.store.tally.reads.Describe(out)
	c.store.tally.missed.Describe(out)
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	t := c.store.tally
	for _, status := range c.store.Status() {
		out <- prometheus.MustNewConstMetric(c.keys, prometheus.GaugeValue, float64(len(status.KeyIDs)), status.Cluster)
		if !status.LastSuccess.IsZero() {
			out <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, float64(status.LastSuccess.UnixMilli())/1000, status.Cluster)
		}
		// What has not happened is shown as 0.
		t.reads.WithLabelValues(status.Cluster, resultSuccess)
		t.reads.WithLabelValues(status.Cluster, resultFailure)
		t.missed.WithLabelValues(status.Cluster)
	}
	t.missed.WithLabelValues(metric.UnknownCluster)
	t.reads.Collect(out)
	t.missed.Collect(out)
}
