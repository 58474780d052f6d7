package hub_test

import (
	"strconv"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/growth"
	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/measure"
)

// BenchmarkScaleHub tabulates what the hub and its API server cost with ever more
// clusters: to accept them, while their agents renew leases for a minute, and to start
// again.
func BenchmarkScaleHub(b *testing.B) {
	var table growth.Table
	for _, clusters := range growth.Sizes(b, 1000, 5000, 10000) {
		b.Run(strconv.Itoa(clusters)+"-clusters", func(b *testing.B) {
			h := prepare(b, clusters)
			p := growth.NewPoint(b, &table, clusters, h.cp, h.audit, hubUser)
			p.Process = measure.Start(b, binary, "hub", p.Kubeconfig)
			p.Phase(b, "accept", func() { h.accept(b) })
			h.join(b)
			p.Phase(b, "idle", func() { h.renewLeases(b) })
			p.Restart(b, binary, "hub", "registration.acceptance", clusters)
			b.ReportMetric(0, "ns/op")
		})
	}
	table.Print(b)
}
