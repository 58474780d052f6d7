package node

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/volume"
)

// stopGrace is the time that containers have to end when the node itself stops.
const stopGrace = 2 * time.Second

// worker owns one Pod: all of its state but latest and logs is touched by the
// goroutine of run only.
type worker struct {
	node            *Node
	namespace, name string
	uid             types.UID
	latest          *mailbox[*corev1.Pod] // nil: gone from the API
	logs            *logs
	// actions are run by run's goroutine.
	actions chan func()
	running sync.WaitGroup

	podState
}

// podState is the worker's state of its Pod.
type podState struct {
	pod        *corev1.Pod
	ip         string
	volumes    *volume.Volumes
	init       []*container
	main       []*container
	prepared   bool
	unprepared int       // attempts to prepare that have failed in a row
	deadline   time.Time // of a Pod that is being deleted
	renewAt    time.Time // of the first token
	published  *corev1.PodStatus
}

func newWorker(n *Node, pod *corev1.Pod) *worker {
	dir := n.podDir(pod.UID)
	w := &worker{
		node: n, namespace: pod.Namespace, name: pod.Name, uid: pod.UID,
		latest:  newMailbox(pod),
		logs:    &logs{dir: filepath.Join(dir, "logs"), now: map[string]started{}},
		actions: make(chan func()),
	}
	w.pod = pod
	w.volumes = volume.New(filepath.Join(dir, "volumes"), n.api, n.config.Clock)
	before := func(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
		for i := range statuses {
			if statuses[i].Name == name {
				return &statuses[i]
			}
		}
		return nil
	}
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		status := before(pod.Status.InitContainerStatuses, spec.Name)
		w.init = append(w.init, newContainer(spec, true, status, corev1.RestartPolicyOnFailure))
	}
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		status := before(pod.Status.ContainerStatuses, spec.Name)
		w.main = append(w.main, newContainer(spec, false, status, pod.Spec.RestartPolicy))
	}
	return w
}

// run is the life of the worker. It ends when the Pod is gone from the API, or
// with the node. Nothing of the Pod runs afterwards.
func (w *worker) run(ctx context.Context) {
	// The end of the node must not cut off what ends the containers.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer w.running.Wait()
	defer cancel()
	defer w.node.addresses.release(w.uid)
	w.followObjects(inner)
	for {
		next, over := w.sync(inner)
		if over {
			w.killAll(inner, 0)
			cancel()
			w.running.Wait()
			w.node.removeDir(w.uid)
			return
		}
		timer := w.node.config.Clock.NewTimer(max(time.Millisecond, next))
		select {
		case <-ctx.Done():
			timer.Stop()
			w.killAll(inner, stopGrace)
			return
		case action := <-w.actions:
			action()
		case <-w.latest.signal:
		case <-timer.C():
		}
		timer.Stop()
		w.drain()
	}
}

// drain runs the actions that are waiting, so that one status reports all.
func (w *worker) drain() {
	for {
		select {
		case action := <-w.actions:
			action()
		default:
			return
		}
	}
}

// post has run's goroutine do something.
func (w *worker) post(ctx context.Context, action func()) {
	select {
	case w.actions <- action:
	case <-ctx.Done():
	}
}

const idle = time.Hour

// sync does what is due and returns when it must be called again at the latest,
// and whether the Pod is gone.
func (w *worker) sync(ctx context.Context) (next time.Duration, over bool) {
	latest := w.latest.get()
	if latest == nil {
		return 0, true
	}
	w.pod = w.view(latest)
	switch {
	case w.pod.DeletionTimestamp != nil:
		next, over = w.terminate(ctx)
	case ended(latest):
		next = idle
	default:
		next = w.advance(ctx)
	}
	if over {
		return 0, true
	}
	if !w.publish(ctx) {
		next = min(next, retryDelay)
	}
	return next, false
}

// view is the Pod with the addresses that this node gives it.
func (w *worker) view(latest *corev1.Pod) *corev1.Pod {
	pod := latest.DeepCopy()
	pod.Status.HostIP = w.node.addresses.NodeIP()
	pod.Status.PodIP = w.ip
	return pod
}

// terminate ends a Pod that is being deleted: first its containers, then the
// object.
func (w *worker) terminate(ctx context.Context) (next time.Duration, over bool) {
	now := w.node.config.Clock.Now()
	grace := time.Duration(0)
	if w.pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*w.pod.DeletionGracePeriodSeconds) * time.Second
	}
	if deadline := now.Add(grace); w.deadline.IsZero() || deadline.Before(w.deadline) {
		if w.deadline.IsZero() {
			w.signalAll()
		}
		w.deadline = deadline
	}
	if w.anyRunning() {
		if now.Before(w.deadline) {
			return w.deadline.Sub(now), false
		}
		w.killAll(ctx, 0)
	}
	if !w.publish(ctx) {
		return retryDelay, false
	}
	err := w.node.api.Delete(ctx, w.pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &w.uid})
	if client.IgnoreNotFound(err) != nil {
		w.node.config.Log.Info("The Pod could not be deleted", "error", err.Error())
		return retryDelay, false
	}
	return 0, true
}

func (w *worker) containers() []*container {
	return append(append([]*container{}, w.init...), w.main...)
}

func (w *worker) anyRunning() bool {
	for _, c := range w.containers() {
		if c.process != nil {
			return true
		}
	}
	return false
}

func (w *worker) signalAll() {
	for _, c := range w.containers() {
		if c.process != nil {
			w.node.events.Eventf(w.pod, corev1.EventTypeNormal, "Killing", "Stopping container %s", c.spec.Name)
			c.process.Signal(syscall.SIGTERM)
		}
	}
}

// killAll ends every container, after asking it if there is a grace, and
// records its end.
func (w *worker) killAll(ctx context.Context, grace time.Duration) {
	var stopping sync.WaitGroup
	for _, c := range w.containers() {
		if c.process == nil {
			continue
		}
		stopping.Go(func() {
			if grace == 0 {
				c.process.Kill()
				return
			}
			c.process.Stop(ctx, grace)
		})
	}
	stopping.Wait()
	for _, c := range w.containers() {
		if c.process != nil {
			c.exited(w.pod, w.id(c), "", w.node.config.Clock.Now())
		}
	}
}

// followObjects keeps volumes up to date.
func (w *worker) followObjects(ctx context.Context) {
	changed := func() { w.post(ctx, func() { w.renewAt = time.Time{} }) }
	references := volume.ReferencesOf(w.pod)
	follow := func(list func() client.ObjectList, names []string) {
		for _, name := range names {
			w.running.Go(func() { w.node.api.follow(ctx, w.node.config.Clock, list(), w.namespace, name, changed) })
		}
	}
	follow(func() client.ObjectList { return &corev1.SecretList{} }, references.Secrets)
	follow(func() client.ObjectList { return &corev1.ConfigMapList{} }, references.ConfigMaps)
}

// prepare gives the Pod its address and makes or refreshes its volumes.
func (w *worker) prepare(ctx context.Context) error {
	if w.ip == "" {
		ip, err := w.address()
		if err != nil {
			return err
		}
		w.ip = ip
		w.pod.Status.PodIP = ip
	}
	if err := os.MkdirAll(w.rootDir(), 0o700); err != nil {
		return err
	}
	next, err := w.volumes.Sync(ctx, w.pod)
	if err != nil {
		return err
	}
	w.prepared = true
	if w.renewAt = next; next.IsZero() {
		w.renewAt = w.node.config.Clock.Now().Add(idle)
	}
	return nil
}

func (w *worker) address() (string, error) {
	if w.pod.Spec.HostNetwork {
		return w.node.addresses.NodeIP(), nil
	}
	return w.node.addresses.take(w.uid)
}

// rootDir is where the roots of the containers are mounted, each in its own
// namespace.
func (w *worker) rootDir() string { return filepath.Join(w.node.podDir(w.uid), "root") }
