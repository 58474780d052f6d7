package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/atomicfile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

const (
	// startTimeout is how long a cluster may take to start; on a busy machine
	// it takes several times the usual.
	startTimeout = 3 * time.Minute
	// stopGrace is how long each program gets to end in.
	stopGrace       = 3 * time.Second
	firstBackOff    = time.Second
	maxBackOff      = 30 * time.Second
	stableAfter     = time.Minute
	egressSocket    = "egress.sock"
	componentNode   = "node"
	componentEgress = "egress"
)

// SupervisorOptions are the options of Supervise.
type SupervisorOptions struct {
	// Dir and Cluster identify the cluster.
	Dir, Cluster string
	// Container is the command line that runs sandbox.Enter.
	Container []string
	Clock     clock.WithTicker
	Log       logr.Logger
}

// Supervise is the life of a supervisor: it starts the cluster that Up has
// described, keeps it running and, when ctx is done, stops it. Only a process
// made for it may call it.
func Supervise(ctx context.Context, o SupervisorOptions) error {
	cluster := layout(o.Dir).cluster(o.Cluster)
	lock, err := cluster.acquire()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the process ends
	s := &supervisor{
		options: o, layout: cluster, group: process.NewGroup(),
		state: State{PID: os.Getpid(), Phase: Starting, StartedAt: o.Clock.Now(), Components: map[string]Component{}},
	}
	defer s.group.Close()
	if err := readJSON(cluster.spec(), &s.spec); err != nil {
		return err
	}
	err = s.run(ctx)
	s.update(func(state *State) {
		state.Phase, state.Components = Stopped, nil
		if err != nil {
			state.Phase, state.Message = Failed, err.Error()
			if hinted, ok := errors.AsType[*HintedError](err); ok {
				state.Hint = hinted.Todo
			}
		}
	})
	return err
}

// supervisor owns the processes of one cluster.
type supervisor struct {
	options SupervisorOptions
	layout  clusterLayout
	spec    Spec
	group   *process.Group
	plane   *controlplane.ControlPlane
	running sync.WaitGroup

	mu    sync.Mutex
	state State
}

// update changes the state and writes it down.
func (s *supervisor) update(change func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.state)
	if s.state.Phase == Running || s.state.Phase == Degraded {
		s.state.Phase = Running
		for _, c := range s.state.Components {
			if c.Message != "" {
				s.state.Phase = Degraded
			}
		}
	}
	if err := writeJSON(s.layout.state(), s.state); err != nil {
		s.options.Log.Error(err, "The state could not be written")
	}
}

func (s *supervisor) component(name string, change func(*Component)) {
	s.update(func(state *State) {
		c := state.Components[name]
		change(&c)
		state.Components[name] = c
	})
}

func (s *supervisor) run(ctx context.Context) error {
	s.update(func(*State) {})
	var err error
	s.plane, err = controlplane.New(controlplane.Config{
		Dir: s.layout.controlPlane(), Binary: s.spec.Localkube, Scheduler: true,
		NoClientSigner: s.spec.NoClientSigner, EgressSocket: egressSocket,
		CertDuration: s.spec.CertDuration, APIServerArgs: s.spec.APIServerArgs,
	}, s.group, s.options.Clock)
	if errors.Is(err, controlplane.ErrPortInUse) {
		return &HintedError{Err: err, Todo: "end the program that uses the port, or take the clusters down and up again for another one"}
	}
	if err != nil {
		return err
	}
	defer s.plane.Close()
	ctx, cancel := context.WithCancel(ctx)
	// Backwards: nothing is restarted any more, the node ends its Pods, then the
	// control plane ends.
	defer s.plane.Stop(context.WithoutCancel(ctx), stopGrace)
	defer s.running.Wait()
	defer cancel()
	if err := s.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	<-ctx.Done()
	s.options.Log.Info("Stopping the cluster")
	return nil
}

// start starts the cluster until it can run Pods.
func (s *supervisor) start(ctx context.Context) error {
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.serveEgress(ctx); err != nil {
		return err
	}
	if err := s.plane.Start(starting); err != nil {
		return err
	}
	for _, program := range s.plane.Programs() {
		s.running.Go(func() {
			s.keepRunning(ctx, program, func(ctx context.Context) error { return s.program(ctx, program) })
		})
	}
	s.update(func(state *State) { state.URL = s.plane.URL() })
	kubeconfig, err := s.plane.Access().Kubeconfig(s.spec.Name, controlplane.AdminUser, controlplane.AdminGroup)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(s.layout.kubeconfig(), kubeconfig); err != nil {
		return err
	}
	admin, err := s.admin()
	if err != nil {
		return err
	}
	s.running.Go(func() { s.keepRunning(ctx, componentNode, s.node) })
	if err := s.publishClusterInfo(starting, admin); err != nil {
		return err
	}
	if err := s.awaitNode(starting, admin); err != nil {
		return err
	}
	s.update(func(state *State) { state.Phase = Running })
	s.options.Log.Info("The cluster runs")
	return nil
}

// keepRunning runs a component until ctx is done, again whenever it ends.
func (s *supervisor) keepRunning(ctx context.Context, name string, run func(context.Context) error) {
	for delay := time.Duration(0); ; {
		began := s.options.Clock.Now()
		err := run(ctx)
		if ctx.Err() != nil {
			return
		}
		if s.options.Clock.Since(began) > stableAfter {
			delay = 0
		}
		delay = min(max(2*delay, firstBackOff), maxBackOff)
		s.down(name, err, delay)
		if !pause.For(ctx, s.options.Clock, delay) {
			return
		}
		s.component(name, func(c *Component) { c.Restarts++ })
	}
}

// program starts a program of the control plane unless it runs, and waits for its end.
func (s *supervisor) program(ctx context.Context, name string) error {
	p, err := s.plane.StartProgram(name)
	if err != nil {
		return err
	}
	s.component(name, func(c *Component) { c.PID, c.Message = p.PID(), "" })
	select {
	case <-ctx.Done():
	case <-p.Done():
	}
	return p.Err()
}

// down records that a component ended and when it is tried again.
func (s *supervisor) down(component string, cause error, delay time.Duration) {
	why := "it ended"
	if cause != nil {
		why += ": " + cause.Error()
	}
	s.options.Log.Info("A component ended and will be restarted", "component", component, "why", why, "in", delay)
	s.component(component, func(c *Component) {
		c.PID = 0
		c.Message = fmt.Sprintf("%s; it is restarted after %s", why, delay)
	})
}
