package controlplane

import (
	"context"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane/pool"
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

// Own is a control plane that one test starts, and may break.
type Own struct {
	*ControlPlane

	plane *pool.Plane
}

// Start starts a control plane and stops it at the end of the test. It is for tests
// that kill one of its programs, or need flags of their own: a test that does neither
// calls Lease, which takes a tenth of the time.
func Start(tb testing.TB, options ...Option) *Own {
	tb.Helper()
	leaveOut(tb, "a control plane")
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	o, err := start(ctx, options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			o.explainDead(tb)
		}
		o.plane.Close()
	})
	return o
}

// explainDead prints the last words of the programs that ended by themselves.
func (o *Own) explainDead(tb testing.TB) {
	tb.Helper()
	for _, program := range o.plane.Programs() {
		if running := o.plane.Process(program); running != nil {
			if status, ended := running.Status(); ended {
				tb.Logf("%s ended by itself (%v):\n%s", program, status, controlplane.Tail(o.LogFile(program)))
			}
		}
	}
}

func start(ctx context.Context, options []Option) (*Own, error) {
	binary, err := FindLocalkube()
	if err != nil {
		return nil, err
	}
	plane, err := pool.Start(ctx, binary, options...)
	if err != nil {
		return nil, err
	}
	cp, err := newControlPlane(plane.Dir, plane.Access())
	if err != nil {
		plane.Close()
		return nil, err
	}
	return &Own{ControlPlane: cp, plane: plane}, nil
}

// StopAPIServer kills the API server with SIGKILL.
func (o *Own) StopAPIServer(tb testing.TB) {
	tb.Helper()
	o.Kill(tb, APIServer)
}

// StartAPIServer starts the API server again, under the same address, and
// returns when it is ready.
func (o *Own) StartAPIServer(tb testing.TB) {
	tb.Helper()
	o.StartProgram(tb, APIServer)
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	if err := o.plane.WaitReady(ctx); err != nil {
		tb.Fatal(err)
	}
}

// Kill kills a program with SIGKILL and returns when it has ended.
func (o *Own) Kill(tb testing.TB, program string) {
	tb.Helper()
	o.plane.KillProgram(program)
}

// StartProgram starts a program again. It does not wait until it is ready.
func (o *Own) StartProgram(tb testing.TB, program string) {
	tb.Helper()
	if _, err := o.plane.StartProgram(program); err != nil {
		tb.Fatal(err)
	}
}

// PID is the process of a program.
func (o *Own) PID(tb testing.TB, program string) int {
	tb.Helper()
	running := o.plane.Process(program)
	if running == nil {
		tb.Fatalf("%s does not run", program)
	}
	return running.PID()
}

// LogFile is where a program of the control plane writes its output.
func (o *Own) LogFile(program string) string { return o.plane.LogFile(program) }
