//go:build linux

package install_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// theirVersion is what OCM's operator writes onto CRDs.
const theirVersion = "1.3.1"

// ours is the image that replaces.
const ours = "example/kubectl-ocm:v1"

// patience is far above what anything takes.
const patience = time.Minute

// run repeats something until the test ends.
func run(t *testing.T, something func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			something(ctx)
			pause.For(ctx, clock.RealClock{}, 20*time.Millisecond)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
}

// beKubelet makes every Pod ready.
func beKubelet(t *testing.T, c client.Client) {
	t.Helper()
	run(t, func(ctx context.Context) {
		var pods corev1.PodList
		if err := c.List(ctx, &pods); err != nil {
			return
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.Status.Phase == corev1.PodRunning {
				continue
			}
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			_ = c.Status().Update(ctx, pod)
		}
	})
}

// runOperator runs an operator of ours when its pod would.
func runOperator(t *testing.T, cp *controlplane.ControlPlane, c client.Client, operator string, options func() (cache.Options, error), setup func(manager.Manager) error) {
	t.Helper()
	start := make(chan struct{})
	begin := sync.OnceFunc(func() { close(start) })
	run(t, func(ctx context.Context) {
		var d appsv1.Deployment
		err := c.Get(ctx, client.ObjectKey{Namespace: names.OperatorNamespace, Name: operator}, &d)
		if err == nil && origin.Ours(&d.Spec.Template.Spec) && d.Status.AvailableReplicas > 0 {
			begin()
		}
	})
	objects, err := options()
	if err != nil {
		t.Fatal(err)
	}
	connection := cp.ConfigForAccount(t, names.OperatorNamespace, operator)
	controllers.Start(t, connection, manager.Options{Cache: objects}, func(_ context.Context, mgr manager.Manager) error {
		return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return nil
			case <-start:
				return setup(mgr)
			}
		}))
	})
}

func setUpHub(mgr manager.Manager) error {
	return clustermanager.Setup(mgr, clustermanager.Config{
		Namespace: names.OperatorNamespace, Image: ours, Version: buildinfo.Version, Replicas: 1,
		ControlPlane: labels.Everything(), Drivers: drivers.All(), Clock: clock.RealClock{},
	})
}

func setUpAgent(mgr manager.Manager) error {
	return klusterlet.Setup(mgr, klusterlet.Config{
		Namespace: names.OperatorNamespace, Image: ours, Version: buildinfo.Version, Replicas: 1,
		ControlPlane: labels.Everything(), Drivers: drivers.All(), Clock: clock.RealClock{},
	})
}

// cutOff returns the runner of a command that is cut off after so many writes, as if it
// was killed, and what it wrote.
func cutOff(t *testing.T, cp *controlplane.ControlPlane, after int) (*install.Runner, *interrupt.Writes) {
	t.Helper()
	writes := interrupt.After(after, "", func(write, _ string) bool {
		return !strings.Contains(write, " /apis/authorization.k8s.io/") // Questions are no writes.
	})
	config := cp.Config(t)
	config.Wrap(writes.Wrap)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, cp)
	r.Client, r.Skip = c, nil
	return r, writes
}

// command is init or join.
type command func(ctx context.Context, r *install.Runner) error

// inPieces runs a command until it ends, cut off after every one to three writes, and
// returns what it wrote. In between, check is called. The run after the last one has
// nothing to write.
func inPieces(t *testing.T, cp *controlplane.ControlPlane, run command, check func()) (all []string) {
	t.Helper()
	const enough = 200
	for n := range enough {
		r, writes := cutOff(t, cp, 1+n%3)
		err := soon(t, r, run)
		all = append(all, writes.About("")...)
		check()
		switch {
		case err == nil:
			expectNothingWritten(t, cp, run)
			return all
		case !errors.Is(err, interrupt.ErrCut):
			t.Fatalf("after %v: %v: %s", all, err, install.Unmet(err))
		}
	}
	t.Fatalf("the command does not end: %v", all)
	return nil
}

// soon runs a command, which has to end.
func soon(t *testing.T, r *install.Runner, run command) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return run(ctx, r)
}

// expectNothingWritten runs a command that has nothing left to do.
func expectNothingWritten(t *testing.T, cp *controlplane.ControlPlane, run command) {
	t.Helper()
	const never = 0
	r, writes := cutOff(t, cp, never)
	if err := soon(t, r, run); err != nil || len(writes.About("")) > 0 {
		t.Errorf("run once more: %v, and wrote %v", err, writes.About(""))
	}
}
