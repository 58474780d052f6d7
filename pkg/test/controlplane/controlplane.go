package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// startTimeout is far above the usual three seconds: the machine may be busy.
const startTimeout = 3 * time.Minute

// Programs of a control plane, for Kill and StartProgram.
const (
	Etcd              = controlplane.Etcd
	APIServer         = controlplane.APIServer
	ControllerManager = controlplane.ControllerManager
	Scheduler         = controlplane.Scheduler
)

// ControlPlane is a running control plane. Its methods may be called from any
// goroutine of a test.
type ControlPlane struct {
	// CAData is the PEM certificate of the cluster's CA.
	CAData []byte
	// URL is the address of the API server.
	URL string

	plane *controlplane.ControlPlane
	admin *rest.Config
	close func()
}

// Start starts a control plane and stops it at the end of the test.
func Start(tb testing.TB, options ...Option) *ControlPlane {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	cp, err := start(ctx, options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(cp.close)
	return cp
}

// Main runs the tests of a package with one control plane, which it puts into
// cp and stops afterwards, also when the test binary is interrupted. It is all
// that a TestMain does. What controllers log is dropped, unless a logger was set before.
func Main(m *testing.M, cp **ControlPlane, options ...Option) {
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout) //nolint:forbidigo // a TestMain has no other
	defer cancel()
	started, err := start(ctx, options)
	if err != nil {
		panic(err)
	}
	defer started.close()
	defer closeOnInterrupt(started)()
	*cp = started
	m.Run()
}

// closeOnInterrupt stops the control plane before the test binary follows a
// signal. The function it returns ends the watch.
func closeOnInterrupt(cp *ControlPlane) (end func()) {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-over:
		case s := <-interrupted:
			cp.close()
			signal.Reset(s)
			if s, ok := s.(syscall.Signal); ok {
				_ = syscall.Kill(os.Getpid(), s)
			}
		}
	})
	return func() {
		signal.Stop(interrupted)
		close(over)
		watch.Wait()
	}
}

func start(ctx context.Context, options []Option) (*ControlPlane, error) {
	binary, err := localkube()
	if err != nil {
		return nil, err
	}
	dir, lock, err := newDir()
	if err != nil {
		return nil, err
	}
	config := controlplane.Config{Dir: dir, Binary: binary}
	for _, option := range options {
		option(&config)
	}
	group := process.NewGroup()
	end := func() {
		group.Close()
		removeAll(dir)
		_ = lock.Close()
	}
	plane, err := controlplane.New(config, group, clock.RealClock{})
	if err != nil {
		end()
		return nil, err
	}
	cp := &ControlPlane{
		CAData: plane.Authority().PEM(),
		URL:    plane.URL(),
		plane:  plane,
		close:  sync.OnceFunc(func() { plane.Close(); end() }),
	}
	cp.admin, err = plane.ConfigFor(controlplane.AdminUser, controlplane.AdminGroup)
	if err == nil {
		err = plane.Start(ctx)
	}
	if err != nil {
		cp.close()
		return nil, err
	}
	return cp, nil
}

// Localkube is the path of the localkube binary, for tests that start control
// planes by other means.
func Localkube(tb testing.TB) string {
	tb.Helper()
	path, err := localkube()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// localkube looks at LOCALKUBE, then at what make builds.
func localkube() (string, error) {
	if path := os.Getenv("LOCALKUBE"); path != "" {
		return controlplane.FindBinary(path)
	}
	return built("localkube", "localkube")
}

// Program is the path of a program that a target of make builds.
func Program(tb testing.TB, name, target string) string {
	tb.Helper()
	path, err := built(name, target)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// built looks in bin under the root of the module that the test belongs to.
func built(name, target string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			path, err := exec.LookPath(filepath.Join(root, "bin", name))
			if err != nil {
				err = fmt.Errorf("%w; build it with: make %s", err, target)
			}
			return path, err
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("%s is in no Go module: %w", dir, errors.ErrUnsupported)
		}
	}
}

// Config is the administrator's connection, a copy for each call, without
// client-side rate limiting.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.admin) }

// ConfigFor is the connection of a user with groups, by a client certificate.
func (c *ControlPlane) ConfigFor(tb testing.TB, user string, groups ...string) *rest.Config {
	tb.Helper()
	config, err := c.plane.ConfigFor(user, groups...)
	if err != nil {
		tb.Fatal(err)
	}
	return config
}

// ConfigForAccount is the connection of a user that has the name and the groups
// of a ServiceAccount, which need not exist.
func (c *ControlPlane) ConfigForAccount(tb testing.TB, namespace, name string) *rest.Config {
	tb.Helper()
	return c.ConfigFor(tb, names.ServiceAccountUser(namespace, name),
		"system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
}

// ConfigForToken is the connection of whom a bearer token belongs to.
func (c *ControlPlane) ConfigForToken(token string) *rest.Config {
	return &rest.Config{
		Host:            c.URL,
		QPS:             -1,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CAData},
	}
}

// Kubeconfig is the administrator's kubeconfig, whose cluster, user and context
// are called name.
func (c *ControlPlane) Kubeconfig(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := c.plane.Kubeconfig(name, controlplane.AdminUser, controlplane.AdminGroup)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// KubeconfigFor is the kubeconfig of a user with groups.
func (c *ControlPlane) KubeconfigFor(tb testing.TB, user string, groups ...string) []byte {
	tb.Helper()
	data, err := c.plane.Kubeconfig("local", user, groups...)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// ServingCert is a key pair for a server at an address, signed by the cluster's CA.
func (c *ControlPlane) ServingCert(tb testing.TB, name string, ip net.IP) (cert, key []byte) {
	tb.Helper()
	cert, key, err := c.plane.Authority().Server(clock.RealClock{}.Now(), name, nil, []net.IP{ip})
	if err != nil {
		tb.Fatal(err)
	}
	return cert, key
}

// Client is the administrator's client, with the scheme of our clients.
func (c *ControlPlane) Client(tb testing.TB) client.Client {
	tb.Helper()
	return c.ClientFor(tb, c.admin)
}

// ClientFor is a client for any connection, with the scheme of our clients.
func (c *ControlPlane) ClientFor(tb testing.TB, config *rest.Config) client.Client {
	tb.Helper()
	cl, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		tb.Fatal(err)
	}
	return cl
}

// StopAPIServer kills the API server with SIGKILL.
func (c *ControlPlane) StopAPIServer(tb testing.TB) {
	tb.Helper()
	c.Kill(tb, APIServer)
}

// StartAPIServer starts the API server again, under the same address, and
// returns when it is ready.
func (c *ControlPlane) StartAPIServer(tb testing.TB) {
	tb.Helper()
	c.StartProgram(tb, APIServer)
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	if err := c.plane.WaitReady(ctx); err != nil {
		tb.Fatal(err)
	}
}

// Kill kills a program with SIGKILL and returns when it has ended.
func (c *ControlPlane) Kill(tb testing.TB, program string) {
	tb.Helper()
	c.plane.KillProgram(program)
}

// StartProgram starts a program again. It does not wait until it is ready.
func (c *ControlPlane) StartProgram(tb testing.TB, program string) {
	tb.Helper()
	if _, err := c.plane.StartProgram(program); err != nil {
		tb.Fatal(err)
	}
}

// PID is the process of a program.
func (c *ControlPlane) PID(tb testing.TB, program string) int {
	tb.Helper()
	running := c.plane.Process(program)
	if running == nil {
		tb.Fatalf("%s does not run", program)
	}
	return running.PID()
}

// LogFile is where a program of the control plane writes its output.
func (c *ControlPlane) LogFile(program string) string { return c.plane.LogFile(program) }
