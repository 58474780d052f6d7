package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/atomicfile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

const (
	egressFile = "egress.yaml"
	logDir     = "logs"
)

// ControlPlane is a control plane whose state directory is prepared and whose
// port is reserved; its programs are started and stopped one by one or all
// together. Its methods may be called from any goroutine.
type ControlPlane struct {
	config    Config
	group     *process.Group
	clock     clock.WithTicker
	authority *Authority
	port      *reservation

	mu      sync.Mutex
	running map[string]*process.Process
}

// New prepares the state directory and reserves the port. It starts nothing.
// The processes are started in group.
func New(config Config, group *process.Group, clk clock.WithTicker) (*ControlPlane, error) {
	c := &ControlPlane{config: config, group: group, clock: clk, running: map[string]*process.Process{}}
	if err := c.prepare(); err != nil {
		return nil, fmt.Errorf("prepare control plane in %s: %w", config.Dir, err)
	}
	return c, nil
}

func (c *ControlPlane) prepare() error {
	pki := filepath.Join(c.config.Dir, "pki")
	for _, dir := range []string{c.config.Dir, pki, filepath.Join(c.config.Dir, logDir)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	var err error
	if c.authority, err = OpenAuthority(pki, c.clock.Now()); err != nil {
		return err
	}
	if err := openTokenKey(pki); err != nil {
		return err
	}
	if c.port, err = reservePort(filepath.Join(c.config.Dir, "port"), c.clock); err != nil {
		return err
	}
	if err := c.writeCredentials(pki); err != nil {
		c.port.release()
		return err
	}
	return nil
}

// writeCredentials issues the credentials of the programs at every start, so that a
// cluster may live longer than its certificates.
func (c *ControlPlane) writeCredentials(pki string) error {
	now := c.clock.Now()
	dns := []string{
		"localhost", "kubernetes", "kubernetes.default",
		"kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(kubernetesService)}
	cert, key, err := c.authority.Server(now, "kube-apiserver", dns, ips)
	if err == nil {
		err = writePair(pki, "apiserver", cert, key)
	}
	if err != nil {
		return err
	}
	cert, key, err = c.authority.Client(now, KubeletClientUser)
	if err == nil {
		err = writePair(pki, "kubelet-client", cert, key)
	}
	if err != nil {
		return err
	}
	return errors.Join(
		c.writeKubeconfig(ControllerManager, "system:kube-controller-manager"),
		c.writeKubeconfig(Scheduler, "system:kube-scheduler"),
		c.writeEgress(),
	)
}

// KubeletClientUser is who the API server is when it calls a node.
const KubeletClientUser = "kube-apiserver-kubelet-client"

func writePair(dir, name string, cert, key []byte) error {
	return errors.Join(
		atomicfile.Write(filepath.Join(dir, name+".crt"), cert),
		atomicfile.Write(filepath.Join(dir, name+".key"), key),
	)
}

func (c *ControlPlane) writeEgress() error {
	if c.config.EgressSocket == "" {
		return nil
	}
	return atomicfile.Write(filepath.Join(c.config.Dir, egressFile), fmt.Appendf(nil, `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`, c.config.EgressSocket))
}

// Programs lists the programs of this control plane in the order of their start.
func (c *ControlPlane) Programs() []string {
	programs := []string{Etcd, APIServer, ControllerManager}
	if c.config.Scheduler {
		programs = append(programs, Scheduler)
	}
	return programs
}

// Start starts every program that does not run and returns when the API server
// is ready. Controllers and scheduler continue to start in the background.
func (c *ControlPlane) Start(ctx context.Context) error {
	if err := c.beginStore(); err != nil {
		return err
	}
	for _, program := range c.Programs() {
		start := func() error { _, err := c.StartProgram(program); return err }
		if program == APIServer {
			start = func() error { return c.startAPIServer(ctx) }
		}
		if err := start(); err != nil {
			return err
		}
	}
	return c.finishStore()
}

// impatience is less than the time after which an API server gives up to wait
// for etcd. One that exits earlier rejects its flags.
const impatience = 10 * time.Second

// startAPIServer returns when the API server is ready. On a machine whose disk
// is busy, etcd may take longer to start than the API server has patience for.
func (c *ControlPlane) startAPIServer(ctx context.Context) error {
	for {
		began := c.clock.Now()
		if _, err := c.StartProgram(APIServer); err != nil {
			return err
		}
		err := c.WaitReady(ctx)
		if !errors.Is(err, ErrEnded) || c.clock.Since(began) < impatience {
			return err
		}
		etcd := c.Process(Etcd)
		if etcd == nil {
			return err
		}
		if _, over := etcd.Status(); over {
			return err
		}
	}
}

// StartProgram starts one program unless it runs, and returns its process.
func (c *ControlPlane) StartProgram(program string) (*process.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.running[program]; p != nil {
		if _, ended := p.Status(); !ended {
			return p, nil
		}
	}
	log, err := openLog(c.LogFile(program))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	p, err := c.group.Start(&exec.Cmd{
		Path:   c.config.Binary,
		Args:   append([]string{program}, c.args(program)...),
		Dir:    c.config.Dir,
		Env:    environment(),
		Stdout: log,
		Stderr: log,
	})
	if err != nil {
		return nil, err
	}
	c.running[program] = p
	return p, nil
}

func (c *ControlPlane) args(program string) []string {
	switch program {
	case Etcd:
		return c.etcdArgs()
	case APIServer:
		return c.apiServerArgs()
	case ControllerManager:
		return c.controllerManagerArgs()
	default:
		return c.schedulerArgs()
	}
}

// environment returns the variables that the programs inherit: where to find temporary
// space, and nothing that could send loopback traffic through a proxy.
func environment() []string {
	env := []string{"HOME=/nonexistent"}
	for _, name := range []string{"PATH", "TMPDIR", "SSL_CERT_FILE", "GOMEMLIMIT", "GOGC"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// LogFile is where a program writes its output.
func (c *ControlPlane) LogFile(program string) string {
	return filepath.Join(c.config.Dir, logDir, program+".log")
}

// Process is the process of a program, or nil when it was never started or was
// stopped.
func (c *ControlPlane) Process(program string) *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[program]
}

// Stop asks the programs to end, in the reverse order of their start, and kills
// those that need longer than grace. It keeps state and port, so that Start
// continues the cluster.
func (c *ControlPlane) Stop(ctx context.Context, grace time.Duration) {
	for _, program := range slices.Backward(c.Programs()) {
		c.StopProgram(ctx, program, grace)
	}
}

// StopProgram asks one program to end and kills it after grace.
func (c *ControlPlane) StopProgram(ctx context.Context, program string, grace time.Duration) {
	if p := c.remove(program); p != nil {
		p.Stop(ctx, grace)
	}
}

// KillProgram ends one program with SIGKILL.
func (c *ControlPlane) KillProgram(program string) {
	if p := c.remove(program); p != nil {
		p.Kill()
	}
}

func (c *ControlPlane) remove(program string) *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.running[program]
	delete(c.running, program)
	return p
}

// Close kills what still runs and gives the port back. The state directory stays.
func (c *ControlPlane) Close() {
	for _, program := range c.Programs() {
		c.KillProgram(program)
	}
	c.port.release()
}
