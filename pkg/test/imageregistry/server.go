package imageregistry

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/utils/clock"

	local "github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/logs"
)

// Offline has a registry check tokens by the keys that the cluster published when
// the registry started, instead of by TokenReview.
const Offline = "--offline"

// Server is a running registry.
type Server struct {
	// Address is its HOST:PORT.
	Address string

	program, ca string
	log         logs.Log
}

// Serve starts a registry with the images in a directory, for tokens with an audience,
// of the cluster of kubeconfig. It ends with the test.
func Serve(tb testing.TB, kubeconfig []byte, images, audience string, flags ...string) *Server {
	tb.Helper()
	dir, now := tb.TempDir(), clock.RealClock{}.Now()
	authority, err := local.OpenAuthority(dir, now)
	if err != nil {
		tb.Fatal(err)
	}
	cert, key, err := authority.Server(now, "registry", nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{program: controlplane.Program(tb, "registry"), ca: filepath.Join(dir, local.AuthorityFile)}
	cmd := exec.Command(s.program, append([]string{ //nolint:noctx,gosec // It is our own, and stopped below.
		"serve", "--dir", images, "--audience", audience,
		"--cert", file(tb, cert), "--key", file(tb, key), "--kubeconfig", file(tb, kubeconfig),
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

// Log returns the registry's log: which requests it rejected, and why.
func (s *Server) Log() string { return s.log.String() }

// file is a file with data.
func file(tb testing.TB, data []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}
