package addonhub_test

import (
	"strconv"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/growth"
	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/measure"
)

// BenchmarkScaleAddOns tabulates what the add-on manager costs with ever more clusters of
// five add-ons each: until all have an identity, while agents report refreshes for a
// minute, as many at every size, and to start again.
func BenchmarkScaleAddOns(b *testing.B) {
	var table growth.Table
	for _, clusters := range growth.Sizes(b, 1000, 5000, 10000) {
		b.Run(strconv.Itoa(clusters*perCluster)+"-addons", func(b *testing.B) {
			h := prepare(b, clusters)
			p := growth.NewPoint(b, &table, clusters*perCluster, h.cp, h.audit, managerUser)
			p.Process = measure.Start(b, binary, "addon-manager", p.Kubeconfig)
			p.Phase(b, "install", func() { h.install(b) })
			var refreshed int
			p.Phase(b, "idle", func() { refreshed = refresh(b, h.admin, clusters) })
			p.Add(b, "idle-refreshes", float64(refreshed))
			p.Restart(b, binary, "addon-manager", "addon.addon", clusters*perCluster)
			b.ReportMetric(0, "ns/op")
		})
	}
	table.Print(b)
}
