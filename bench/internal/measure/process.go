package measure

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// Process is a running role.
type Process struct {
	cmd *exec.Cmd
}

// Start starts a role of our binary, with a kubeconfig and more flags, and waits
// until it leads and its cache is filled. It ends with the benchmark.
func Start(b *testing.B, binary, role, kubeconfig string, flags ...string) *Process {
	b.Helper()
	var now clock.RealClock
	port := FreePort(b)
	log, err := os.Create(filepath.Join(b.TempDir(), role+".log"))
	if err != nil {
		b.Fatal(err)
	}
	args := append([]string{
		"controller", role, "--kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", "--health-port=" + port, "--metrics-port=0",
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
	for limit := now.Now().Add(time.Minute); !ready(b, port); now.Sleep(100 * time.Millisecond) {
		if now.Now().After(limit) {
			b.Fatalf("%s is not ready after a minute", role)
		}
	}
	now.Sleep(5 * time.Second)
	return &Process{cmd: cmd}
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
	data, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
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

// PeakKiB is the most memory that the process ever had.
func (p *Process) PeakKiB(b *testing.B) int64 {
	b.Helper()
	return p.status(b, "VmHWM:")
}

// PrivateKiB is the memory that the process has now for itself: its own pages,
// not those of the binary, which processes share.
func (p *Process) PrivateKiB(b *testing.B) int64 {
	b.Helper()
	return p.status(b, "RssAnon:")
}

// status reads one figure of the process.
func (p *Process) status(b *testing.B, name string) int64 {
	b.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), name)
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib
}

// MostPrivateKiB is the most memory that the process has for itself until done,
// looked at every 50 ms. The benchmark fails when that takes longer than limit.
func (p *Process) MostPrivateKiB(b *testing.B, done <-chan struct{}, limit time.Duration) (most int64) {
	b.Helper()
	var now clock.RealClock
	for over := now.After(limit); ; {
		most = max(most, p.PrivateKiB(b))
		select {
		case <-done:
			return most
		case <-over:
			b.Fatalf("not done after %s", limit)
		case <-now.After(50 * time.Millisecond):
		}
	}
}
