package bench_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
// time and peak memory of "version --client", both the median of all runs, and the
// size of the binary. Peak memory differs from run to run by 2 MiB: the kernel maps
// pages around those that are used.
func BenchmarkStart(b *testing.B) {
	installed, size := install(b)
	var cpu []time.Duration
	var peak []int64
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), installed, "version", "--client")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			b.Fatal("no resource usage of a child on this system")
		}
		cpu = append(cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		peak = append(peak, usage.Maxrss)
	}
	slices.Sort(cpu)
	slices.Sort(peak)
	b.ReportMetric(float64(cpu[len(cpu)/2].Microseconds())/1000, "cpu-ms/start")
	b.ReportMetric(float64(peak[len(peak)/2])/1024, "peak-MiB")
	b.ReportMetric(float64(peak[len(peak)-1])/1024, "highest-peak-MiB")
	b.ReportMetric(float64(size)/1e6, "binary-MB")
	b.ReportMetric(0, "ns/op")
}

// install copies the binary, because pages of a file that the linker has just
// written are larger in memory, and count whole. It reads little at a time: what
// this process has in memory would count as its children's.
func install(b *testing.B) (path string, size int64) {
	b.Helper()
	from, err := os.Open(binary)
	if err != nil {
		b.Fatalf("build it first, with make build: %v", err)
	}
	path = filepath.Join(b.TempDir(), "kubectl-ocm")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		b.Fatal(err)
	}
	size, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 64<<10))
	if err = errors.Join(err, to.Close(), from.Close()); err != nil {
		b.Fatal(err)
	}
	return path, size
}
