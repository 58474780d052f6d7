package census

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// patience bounds a count: the cache may not have begun.
const patience = 5 * time.Second

// Collector is the metric ocm_clusters: how many clusters are in each state, counted in the
// cache when the metric is read. A cache that cannot be read has no clusters to count.
type Collector struct {
	Clusters client.Reader
}

var _ prometheus.Collector = Collector{}

func clusters() *prometheus.Desc {
	return prometheus.NewDesc("ocm_clusters", "Managed clusters of the hub by their state.", []string{"state"}, nil)
}

// Describe implements prometheus.Collector.
func (c Collector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- clusters() }

// Collect implements prometheus.Collector.
func (c Collector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), patience) //nolint:forbidigo // prometheus.Collector has no context
	defer cancel()
	var list clusterv1.ManagedClusterList
	if err := c.Clusters.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		metrics <- prometheus.NewInvalidMetric(clusters(), err)
		return
	}
	count := map[State]int{}
	for i := range list.Items {
		count[Of(&list.Items[i])]++
	}
	for _, state := range States() {
		metrics <- prometheus.MustNewConstMetric(clusters(), prometheus.GaugeValue, float64(count[state]), string(state))
	}
}
