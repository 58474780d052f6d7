package imageregistry

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// Offline has a registry check tokens by the keys that the cluster published when
// the registry started, instead of by TokenReview.
const Offline = "--offline"

// Server is a running registry.
type Server struct {
	// Address is its HOST:PORT.
	Address string

	program, ca string
	log         log
}

// log may be read while a process writes it.
type log struct {
	mu   sync.Mutex
	data bytes.Buffer
}

// Write implements io.Writer.
func (l *log) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.Write(data)
}

// Serve starts a registry whose images are in dir, for tokens with an audience of
// the cluster that kubeconfig leads to. It ends with the test.
func Serve(tb testing.TB, kubeconfig []byte, dir, audience string, flags ...string) *Server {
	tb.Helper()
	cert, key := certificate(tb)
	s := &Server{program: program(tb), ca: file(tb, cert)}
	cmd := exec.Command(s.program, append([]string{ //nolint:noctx,gosec // It is our own, and stopped below.
		"serve", "--dir", dir, "--audience", audience,
		"--cert", s.ca, "--key", file(tb, key), "--kubeconfig", file(tb, kubeconfig),
	}, flags...)...)
	cmd.Stderr = &s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		tb.Fatalf("the registry does not start: %v\n%s", err, s.Log())
	}
	s.Address = strings.TrimSpace(address)
	return s
}

// Log is what the registry has logged: which requests it refused, and why.
func (s *Server) Log() string {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.data.String()
}

// program is the registry and its client.
func program(tb testing.TB) string {
	tb.Helper()
	path, err := controlplane.Binary("registry")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		tb.Fatalf("%v; build it with: make e2e-registry", err)
	}
	return path
}

// file is a file with data.
func file(tb testing.TB, data []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}
