package hub_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
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
)

// process is a running hub.
type process struct {
	cmd *exec.Cmd
}

// startHub starts the hub's controllers and waits until they work.
func startHub(b *testing.B, kubeconfig string) *process {
	b.Helper()
	port := freePort(b)
	log, err := os.Create(filepath.Join(b.TempDir(), "hub.log"))
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(binary, "controller", "hub", "--kubeconfig="+kubeconfig, //nolint:noctx // It is stopped below.
		"--bind-address=127.0.0.1", "--health-port="+port, "--metrics-port=0",
		"--leader-election-namespace=open-cluster-management-hub")
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
			b.Logf("the hub's last lines:\n%s", bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
		}
		_ = log.Close()
	})
	for limit := now.Now().Add(time.Minute); !ready(b, port); now.Sleep(100 * time.Millisecond) {
		if now.Now().After(limit) {
			b.Fatal("the hub is not ready after a minute")
		}
	}
	now.Sleep(5 * time.Second) // Until it leads and its cache is filled.
	return &process{cmd: cmd}
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

func freePort(b *testing.B) string {
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

// cpu is the time that the process has used so far.
func (p *process) cpu(b *testing.B) time.Duration {
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

// peakKiB is the most memory that the process ever had.
func (p *process) peakKiB(b *testing.B) int64 {
	b.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib
}

// audit is the API server's own record of who wrote what.
type audit struct {
	policy, log string
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  resources: [{group: authorization.k8s.io}, {group: authentication.k8s.io}]
- level: Metadata
`

func newAudit(b *testing.B) audit {
	b.Helper()
	a := audit{policy: filepath.Join(b.TempDir(), "policy.yaml"), log: filepath.Join(b.TempDir(), "audit.log")}
	if err := os.WriteFile(a.policy, []byte(auditPolicy), 0o600); err != nil {
		b.Fatal(err)
	}
	return a
}

func (a audit) args() []string {
	return []string{"--audit-policy-file=" + a.policy, "--audit-log-path=" + a.log, "--audit-log-mode=batch", "--audit-log-batch-max-wait=1s"}
}

// writes counts the writes so far by user. The renewals of leader election are
// not counted.
func (a audit) writes(b *testing.B) map[string]int {
	b.Helper()
	now.Sleep(2 * time.Second) // The log is written in batches.
	file, err := os.Open(a.log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	counts := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			User      struct{ Username string }
			ObjectRef struct{ Resource, Namespace, Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			continue // The last line may be half written.
		}
		if ref := entry.ObjectRef; ref.Resource == "leases" && !strings.HasPrefix(ref.Namespace, "cluster") {
			continue
		}
		counts[entry.User.Username]++
	}
	return counts
}

func difference(after, before map[string]int) map[string]int {
	diff := map[string]int{}
	for user, n := range after {
		if n > before[user] {
			diff[user] = n - before[user]
		}
	}
	return diff
}
