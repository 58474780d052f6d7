package jwks

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/internal/metric"
)

const (
	resultSuccess = "success"
	resultFailure = "failure"
)

// tally counts what happens to clusters.
type tally struct {
	mu     sync.Mutex
	counts map[string]*counts
}

type counts struct{ succeeded, failed, missed float64 }

func (t *tally) refreshed(cluster string, err error) {
	t.add(cluster, func(c *counts) {
		if err == nil {
			c.succeeded++
		} else {
			c.failed++
		}
	})
}

func (t *tally) missed(cluster string) { t.add(cluster, func(c *counts) { c.missed++ }) }

func (t *tally) add(cluster string, count func(*counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts[cluster]
	if c == nil {
		c = &counts{}
		if t.counts == nil {
			t.counts = make(map[string]*counts)
		}
		t.counts[cluster] = c
	}
	count(c)
}

// take returns the counts of cluster.
func (t *tally) take(cluster string) counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.counts[cluster]; c != nil {
		return *c
	}
	return counts{}
}

// retain forgets the counts of clusters that are not known any more.
func (t *tally) retain(known func(cluster string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for cluster := range t.counts {
		if cluster != metric.UnknownCluster && !known(cluster) {
			delete(t.counts, cluster)
		}
	}
}

// Metrics returns the metrics of s, to be registered once. Their label cluster
// holds only names that are configured or published.
func (s *Store) Metrics() prometheus.Collector {
	name := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(metric.Prefix+name, help, append([]string{"cluster"}, labels...), nil)
	}
	return &collector{
		store:   s,
		keys:    name("keys", "Keys of the cluster that are used."),
		success: name("key_last_success_timestamp_seconds", "When the cluster's keys were last read successfully."),
		refresh: name("key_refresh_total", "How often the cluster's keys were read, by result.", "result"),
		missed:  name("unknown_kid_total", "Tokens of the cluster's issuer that were refused because their key id is not known."),
	}
}

type collector struct {
	store                          *Store
	keys, success, refresh, missed *prometheus.Desc
}

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.keys, c.success, c.refresh, c.missed} {
		out <- desc
	}
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	tell := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	others := true // No cluster has the label's name for itself.
	for _, status := range c.store.Status() {
		others = others && status.Cluster != metric.UnknownCluster
		count := c.store.tally.take(status.Cluster)
		tell(c.keys, prometheus.GaugeValue, float64(len(status.KeyIDs)), status.Cluster)
		if !status.LastSuccess.IsZero() {
			tell(c.success, prometheus.GaugeValue, float64(status.LastSuccess.UnixMilli())/1000, status.Cluster)
		}
		tell(c.refresh, prometheus.CounterValue, count.succeeded, status.Cluster, resultSuccess)
		tell(c.refresh, prometheus.CounterValue, count.failed, status.Cluster, resultFailure)
		tell(c.missed, prometheus.CounterValue, count.missed, status.Cluster)
	}
	if others {
		tell(c.missed, prometheus.CounterValue, c.store.tally.take(metric.UnknownCluster).missed, metric.UnknownCluster)
	}
}
