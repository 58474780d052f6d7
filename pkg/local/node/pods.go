package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/kubelet"
)

// update passes a Pod to its worker, and starts the worker if there is none.
func (n *Node) update(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if w, ok := n.workers[pod.UID]; ok {
		w.latest.put(pod)
		return
	}
	if ended(pod) && pod.DeletionTimestamp == nil {
		return
	}
	w := newWorker(n, pod)
	n.workers[pod.UID] = w
	n.running.Go(func() {
		w.run(ctx)
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.workers, pod.UID)
	})
}

// ended reports whether a Pod has terminated for good.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// forget informs the worker that its Pod is no longer in the API.
func (n *Node) forget(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if w, ok := n.workers[pod.UID]; ok {
		w.latest.put(nil)
		return
	}
	n.removeDir(pod.UID)
}

// sweep removes what Pods have left that were deleted while no node ran.
func (n *Node) sweep() {
	entries, err := os.ReadDir(n.podsDir())
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, entry := range entries {
		uid := types.UID(entry.Name())
		if _, ok := n.workers[uid]; !ok {
			n.removeDir(uid)
		}
	}
}

func (n *Node) podDir(uid types.UID) string { return filepath.Join(n.podsDir(), string(uid)) }

func (n *Node) removeDir(uid types.UID) {
	if err := os.RemoveAll(n.podDir(uid)); err != nil {
		n.config.Log.Info("The directory of a Pod could not be removed", "error", err.Error())
	}
}

// ContainerLog implements kubelet.Logs.
func (n *Node) ContainerLog(ref kubelet.LogRef) (kubelet.Log, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.workers {
		if w.namespace != ref.Namespace || w.name != ref.Pod {
			continue
		}
		return w.logs.find(ref)
	}
	return kubelet.Log{}, fmt.Errorf("pod %s/%s on this node: %w", ref.Namespace, ref.Pod, kubelet.ErrNotFound)
}
