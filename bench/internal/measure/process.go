package measure

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// sampleInterval is how often the private memory of a process is read: the
// kernel records no peak of it.
const sampleInterval = 50 * time.Millisecond

// Process is a running role.
type Process struct {
	cmd  *exec.Cmd
	pid  int
	peak atomic.Int64
	// metricsPort and healthPort are of 127.0.0.1.
	metricsPort, healthPort string
}

// Attach measures a running process until the benchmark ends.
func Attach(b *testing.B, pid int) *Process {
	b.Helper()
	p := &Process{pid: pid}
	go p.sample(b.Context())
	return p
}

// sample records the peak of the private memory until the process or the
// benchmark ends.
func (p *Process) sample(ctx context.Context) {
	ticker := clock.RealClock{}.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		private, err := privateKiB(p.pid)
		if err != nil {
			return
		}
		p.peak.Store(max(p.peak.Load(), private))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// Start starts a role of our binary, with a kubeconfig and more flags, and waits
// until it leads and its cache is filled. It ends with the benchmark.
func Start(b *testing.B, binary, role, kubeconfig string, flags ...string) *Process {
	b.Helper()
	p := Launch(b, binary, role, kubeconfig, flags...)
	p.AwaitReady(b)
	clock.RealClock{}.Sleep(5 * time.Second)
	p.peak.Store(0)
	return p
}

// AwaitReady waits until the process says that it is ready.
func (p *Process) AwaitReady(b *testing.B) {
	b.Helper()
	var now clock.RealClock
	for limit := now.Now().Add(settling); !ready(b, p.healthPort); now.Sleep(100 * time.Millisecond) {
		if now.Now().After(limit) {
			b.Fatalf("a process is not ready after %v", settling)
		}
	}
}

// Launch starts a role as Start does, and waits for nothing.
func Launch(b *testing.B, binary, role, kubeconfig string, flags ...string) *Process {
	b.Helper()
	health, metrics := FreePort(b), FreePort(b)
	log, err := os.Create(filepath.Join(b.TempDir(), role+".log"))
	if err != nil {
		b.Fatal(err)
	}
	args := append([]string{
		"controller", role, "--kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", "--health-port=" + health, "--metrics-port=" + metrics,
		"--leader-election-namespace=open-cluster-management-hub",
	}, flags...)
	cmd := exec.Command(binary, args...) //nolint:noctx,gosec // It is stopped below.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		b.Fatalf("build it first, with make build: %v", err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		data, _ := os.ReadFile(log.Name())
		if lines := bytes.Split(data, []byte("\n")); b.Failed() || bytes.Contains(data, []byte("\nE")) {
			b.Logf("the last lines of %s:\n%s", role, bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
		}
		_ = log.Close()
	})
	p := Attach(b, cmd.Process.Pid)
	p.cmd, p.healthPort, p.metricsPort = cmd, health, metrics
	return p
}

func ready(b *testing.B, port string) bool {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/readyz", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := (&http.Client{Timeout: time.Second}).Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// FreePort is a port of 127.0.0.1 that nothing listens at.
func FreePort(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // Closed at once.
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	return port
}

// Stop ends the process as Kubernetes ends a pod's and waits until it is gone.
func (p *Process) Stop(b *testing.B) {
	b.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	_ = p.cmd.Wait()
}

// CPU is the time that the process has used so far.
func (p *Process) CPU(b *testing.B) time.Duration {
	b.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/stat")
	if err != nil {
		b.Fatal(err)
	}
	// Fields are counted behind the name in parentheses; 14 and 15 of all are
	// user and system time in hundredths of a second.
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// PeakKiB is the largest private memory of the process since it is measured.
func (p *Process) PeakKiB(b *testing.B) int64 {
	b.Helper()
	return max(p.peak.Load(), p.PrivateKiB(b))
}

// PrivateKiB is the private memory of the process (RssAnon): pages of the binary,
// which its processes share and the kernel can drop, are not counted.
func (p *Process) PrivateKiB(b *testing.B) int64 {
	b.Helper()
	kib, err := privateKiB(p.pid)
	if err != nil {
		b.Fatal(err)
	}
	return kib
}

func privateKiB(pid int) (int64, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(data), "\nRssAnon:")
	if !found {
		return 0, fmt.Errorf("process %d has ended", pid)
	}
	return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
}
