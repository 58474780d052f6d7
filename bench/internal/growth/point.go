package growth

import (
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/bench/internal/measure"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// Point is a process at one size, with the API server that it works on.
type Point struct {
	table           *Table
	size            int
	audit           measure.Audit
	user            string
	meter           *measure.Meter
	apiServer, etcd *measure.Process

	// Kubeconfig is what the process is to be started with.
	Kubeconfig string
	// Process is the one that runs, nil for none.
	Process *measure.Process
}

// NewPoint returns the point of a size in a table. The process acts as user on an API
// server that keeps an audit log.
func NewPoint(b *testing.B, table *Table, size int, cp *controlplane.Own, audit measure.Audit, user string) *Point {
	b.Helper()
	meter := measure.NewMeter(b, cp.URL)
	return &Point{
		table: table, size: size, audit: audit, user: user, meter: meter,
		apiServer:  measure.Attach(b, cp.PID(b, controlplane.APIServer)),
		etcd:       measure.Attach(b, cp.PID(b, controlplane.Etcd)),
		Kubeconfig: fleet.KubeconfigAt(b, cp, meter.URL(), user),
	}
}

// Add adds a cost.
func (p *Point) Add(b *testing.B, name string, cost float64) {
	b.Helper()
	p.table.Add(b, p.size, name, cost)
}

// Phase adds what it costs while something is done: wall time, CPU of the process, of its
// API server and of etcd, and the requests and the traffic of the process.
func (p *Point) Phase(b *testing.B, name string, do func()) {
	b.Helper()
	var now clock.RealClock
	requests, bytes := p.audit.Requests(b)[p.user], p.meter.Bytes()
	cpu := []time.Duration{0, p.apiServer.CPU(b), p.etcd.CPU(b)}
	if p.Process != nil {
		cpu[0] = p.Process.CPU(b)
	}
	start := now.Now()
	do()
	p.Add(b, name+"-wall-s", now.Since(start).Seconds())
	p.Add(b, name+"-cpu-s", (p.Process.CPU(b) - cpu[0]).Seconds())
	p.Add(b, name+"-apiserver-cpu-s", (p.apiServer.CPU(b) - cpu[1]).Seconds())
	p.Add(b, name+"-etcd-cpu-s", (p.etcd.CPU(b) - cpu[2]).Seconds())
	p.Add(b, name+"-MiB", float64(p.meter.Bytes()-bytes)/(1<<20))
	after := p.audit.Requests(b)[p.user]
	p.Add(b, name+"-requests", float64(after.Reads+after.Writes-requests.Reads-requests.Writes))
}

// Restart ends the process, starts a role of a binary again, and adds what it costs until a
// controller has looked at so many objects and nothing is left to do.
func (p *Point) Restart(b *testing.B, binary, role, controller string, objects int) {
	b.Helper()
	p.Add(b, "private-MiB", mebibytes(p.Process.PeakKiB(b)))
	p.Process.Stop(b)
	p.Process = nil
	p.Phase(b, "restart", func() {
		p.Process = measure.Launch(b, binary, role, p.Kubeconfig)
		p.Process.AwaitSettled(b, controller, objects)
	})
	p.Add(b, "restart-private-MiB", mebibytes(p.Process.PeakKiB(b)))
	p.Add(b, "apiserver-private-MiB", mebibytes(p.apiServer.PeakKiB(b)))
	p.Add(b, "etcd-private-MiB", mebibytes(p.etcd.PeakKiB(b)))
}

func mebibytes(kib int64) float64 { return float64(kib) / 1024 }
