package bench_test

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// now is the clock that benchmarks measure by.
var now clock.RealClock

// binary is the stripped binary as a user installs it.
const binary = "../bin/kubectl-ocm"

// BenchmarkStart measures what every command pays before it does anything: CPU
// time and peak memory of "version --client", and the size of the binary.
func BenchmarkStart(b *testing.B) {
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatalf("build it first, with make build: %v", err)
	}
	var cpu []time.Duration
	var peak int64
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), binary, "version", "--client")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			b.Fatal("no resource usage of a child on this system")
		}
		cpu = append(cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		peak = max(peak, usage.Maxrss)
	}
	slices.Sort(cpu)
	b.ReportMetric(float64(cpu[len(cpu)/2].Microseconds())/1000, "cpu-ms/start")
	b.ReportMetric(float64(peak)/1024, "peak-MiB")
	b.ReportMetric(float64(info.Size())/1e6, "binary-MB")
	b.ReportMetric(0, "ns/op")
}
