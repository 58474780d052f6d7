package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/environ"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/logfile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/probe"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/sandbox"
)

// advance moves a Pod toward running and returns the time until its next step.
func (w *worker) advance(ctx context.Context) time.Duration {
	now := w.node.config.Clock.Now()
	switch {
	case !now.Before(w.renewAt):
		delay := w.tryPrepare(ctx)
		if !w.prepared {
			return delay
		}
	case !w.prepared:
		// An attempt has failed, and something else woke the worker before the
		// next one.
		return w.renewAt.Sub(now)
	}
	next := w.renewAt.Sub(now)
	for _, c := range w.init {
		if !c.succeeded() {
			w.waitMain(reasonInitalizing)
			return min(next, w.ensure(ctx, c))
		}
	}
	for _, c := range w.main {
		next = min(next, w.ensure(ctx, c))
	}
	return next
}

// quietAttempts is how often preparing a Pod may fail before an event is recorded:
// the API server may see later than the node that the Pod belongs to it, and denies
// access to the Pod's objects until then.
const quietAttempts = 3

// tryPrepare prepares the Pod and returns when to try again if that failed.
func (w *worker) tryPrepare(ctx context.Context) time.Duration {
	err := w.prepare(ctx)
	if err == nil {
		w.unprepared = 0
		return 0
	}
	w.unprepared++
	delay := retryDelay
	if w.unprepared < quietAttempts {
		delay = retryDelay / 10
	} else {
		w.node.events.Eventf(w.pod, corev1.EventTypeWarning, "FailedMount", "%v", err)
		w.waitAll(reasonCreating, err.Error())
	}
	// What is mounted already stays as it was.
	w.renewAt = w.node.config.Clock.Now().Add(delay)
	return delay
}

func (w *worker) waitAll(reason, message string) {
	for _, c := range w.containers() {
		if c.state.Waiting != nil && c.state.Waiting.Reason != reasonCrashLoop {
			c.wait(reason, message)
		}
	}
}

func (w *worker) waitMain(reason string) {
	for _, c := range w.main {
		if c.state.Waiting != nil && c.process == nil {
			c.wait(reason, "")
		}
	}
}

// ensure starts a container that shall run and does not, as soon as it may, and
// returns when to try again.
func (w *worker) ensure(ctx context.Context, c *container) time.Duration {
	now := w.node.config.Clock.Now()
	if c.process != nil || c.done(w.pod) {
		return idle
	}
	if now.Before(c.notBefore) {
		return c.notBefore.Sub(now)
	}
	reason, err := w.start(ctx, c)
	if err == nil {
		return idle
	}
	if reason == reasonErrImage && c.state.Waiting != nil && c.state.Waiting.Reason == reasonErrImage {
		reason = reasonBackOffPull
	}
	w.node.events.Eventf(w.pod, corev1.EventTypeWarning, "Failed", "Error: %s: container %s: %v", reason, c.spec.Name, err)
	c.wait(reason, err.Error())
	return c.delay(now)
}

// start starts a container. The reason says which step failed.
func (w *worker) start(ctx context.Context, c *container) (reason string, err error) {
	spec, reason, err := w.sandboxSpec(ctx, c)
	if err != nil {
		return reason, err
	}
	ended := make(chan struct{})
	path, err := w.logs.begin(c.spec.Name, c.restarts, ended)
	if err != nil {
		return reasonRun, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return reasonRun, err
	}
	p, err := w.node.config.Launcher.Start(spec, out)
	_ = out.Close()
	if err != nil {
		_ = in.Close()
		close(ended)
		return reasonRun, err
	}
	now := w.node.config.Clock.Now()
	c.process, c.binary = p, spec.Binary
	c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
	c.started = c.spec.StartupProbe == nil
	c.ready = c.started && c.spec.ReadinessProbe == nil
	w.node.events.Eventf(w.pod, corev1.EventTypeNormal, "Started", "Started container %s", c.spec.Name)
	w.running.Go(func() {
		defer close(ended)
		if err := errors.Join(logfile.Copy(path, in, w.node.config.Clock), in.Close()); err != nil {
			w.node.config.Log.Info("A log is incomplete", "error", err.Error())
		}
	})
	w.running.Go(func() {
		<-p.Done()
		// All it has written is in the log before its end is visible.
		<-ended
		message := w.terminationMessage(ctx, c.spec, path)
		w.post(ctx, func() {
			if c.process == p {
				c.exited(w.pod, w.id(c), message, w.node.config.Clock.Now())
				if c.state.Waiting != nil {
					w.node.events.Eventf(w.pod, corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container %s", c.spec.Name)
				}
			}
		})
	})
	w.probe(ctx, c)
	return "", nil
}

// sandboxSpec gathers all that the process needs.
func (w *worker) sandboxSpec(ctx context.Context, c *container) (spec sandbox.Spec, reason string, err error) {
	binary, err := w.node.config.Images.Find(c.spec.Image)
	if err != nil {
		return spec, reasonErrImage, err
	}
	spec = sandbox.Spec{
		Root: w.rootDir(), Hostname: hostname(w.pod), Binary: binary, WorkingDir: c.spec.WorkingDir,
		ReadOnlyRoot: c.spec.SecurityContext != nil && c.spec.SecurityContext.ReadOnlyRootFilesystem != nil &&
			*c.spec.SecurityContext.ReadOnlyRootFilesystem,
	}
	if c.init && c.spec.RestartPolicy != nil {
		return spec, reasonConfig, fmt.Errorf("sidecar containers are %w", errUnsupported)
	}
	variables, err := environ.Resolve(ctx, environ.Container{
		Pod: w.pod, Spec: c.spec, Objects: w.node.api, Base: w.baseVariables(spec.Hostname),
	})
	if err != nil {
		return spec, reasonConfig, err
	}
	spec.Env = variables.List()
	args, err := arguments(c.spec, spec.BinaryPath())
	if err != nil {
		return spec, reasonRun, err
	}
	spec.Args = variables.Expand(args)
	for _, m := range c.spec.VolumeMounts {
		if m.SubPath != "" || m.SubPathExpr != "" {
			return spec, reasonConfig, fmt.Errorf("subPath of volume %s is %w", m.Name, errUnsupported)
		}
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Source: w.volumes.Dir(m.Name), Path: m.MountPath, ReadOnly: m.ReadOnly})
	}
	return spec, "", nil
}

var errUnsupported = errors.New("not supported by local nodes")

func (w *worker) baseVariables(hostname string) map[string]string {
	return map[string]string{
		"PATH":                          "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME":                          "/",
		"HOSTNAME":                      hostname,
		"KUBERNETES_SERVICE_HOST":       w.node.config.ServerHost,
		"KUBERNETES_SERVICE_PORT":       w.node.config.ServerPort,
		"KUBERNETES_SERVICE_PORT_HTTPS": w.node.config.ServerPort,
	}
}

// hostname is the Pod's, cut to what the kernel and DNS allow.
func hostname(pod *corev1.Pod) string {
	name := pod.Name
	if pod.Spec.Hostname != "" {
		name = pod.Spec.Hostname
	}
	return strings.TrimRight(name[:min(len(name), 63)], "-.")
}

// probe starts the probes of a container that has just been started: the
// startup probe first, the others when it has passed.
func (w *worker) probe(ctx context.Context, c *container) {
	ctx, c.cancel = context.WithCancel(ctx)
	rest := func() {
		w.watch(ctx, c, c.spec.LivenessProbe, "Liveness", func(err error) {
			w.killUnhealthy(ctx, c, err)
		})
		w.watch(ctx, c, c.spec.ReadinessProbe, "Readiness", func(err error) { c.ready = err == nil })
	}
	if c.spec.StartupProbe == nil {
		rest()
		return
	}
	w.watch(ctx, c, c.spec.StartupProbe, "Startup", func(err error) {
		switch {
		case err != nil:
			w.killUnhealthy(ctx, c, err)
		case !c.started:
			c.started = true
			c.ready = c.spec.ReadinessProbe == nil
			rest()
		}
	})
}

// watch makes one kind of probe; act is run by run's goroutine.
func (w *worker) watch(ctx context.Context, c *container, p *corev1.Probe, kind string, act func(error)) {
	if p == nil {
		return
	}
	if !probe.Supported(p) {
		w.node.events.Eventf(w.pod, corev1.EventTypeWarning, "ProbeNotSupported",
			"%s probe of container %s: exec probes are %v; it counts as passed", kind, c.spec.Name, errUnsupported)
	}
	process, pod := c.process, w.pod
	target := probe.Target{IP: w.ip, Ports: c.spec.Ports, Client: w.node.probes}
	watcher := probe.Watcher{
		Probe: p, Clock: w.node.config.Clock, Eager: kind == "Readiness",
		Check: func(ctx context.Context) error { return probe.Check(ctx, p, target) },
		Report: func(err error) {
			if err != nil {
				w.node.events.Eventf(pod, corev1.EventTypeWarning, "Unhealthy", "%s probe of container %s failed: %v", kind, c.spec.Name, err)
			}
			w.post(ctx, func() {
				if c.process == process {
					act(err)
				}
			})
		},
	}
	w.running.Go(func() { watcher.Watch(ctx) })
}

// killUnhealthy ends a container whose probe says so; it is then restarted as
// if it had ended by itself.
func (w *worker) killUnhealthy(ctx context.Context, c *container, err error) {
	if err == nil || c.process == nil {
		return
	}
	w.node.events.Eventf(w.pod, corev1.EventTypeNormal, "Killing", "Container %s failed its probe and will be restarted", c.spec.Name)
	grace := 30 * time.Second
	if seconds := w.pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	p := c.process
	w.running.Go(func() { p.Stop(ctx, grace) })
}
