package node_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(t, f.pod("pod", corev1.Container{Env: as("serve")}))
	pod := f.await(t, "pod", "it is ready", ready)
	eventually(t, "an answer", func(context.Context) (bool, error) { return strings.HasPrefix(f.get(t, pod, "/"), "{"), nil })
	dir := filepath.Join(f.dir, "pods", string(pod.UID))
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the Pod", func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	eventually(t, "the end of its directory", func(context.Context) (bool, error) {
		_, err := os.Stat(dir)
		return os.IsNotExist(err), nil
	})
	if answer := f.get(t, pod, "/"); strings.HasPrefix(answer, "{") {
		t.Error("a deleted Pod answers")
	}
}

func TestDeletionOfAPodThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pod := f.pod("pod", corev1.Container{Env: as("stubborn")})
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	pod.Finalizers = []string{"example.com/look"}
	f.create(t, pod)
	f.await(t, "pod", "it ignores the signal", func(pod *corev1.Pod) bool {
		if !ready(pod) {
			return false
		}
		log, err := logsOf(t, pod, corev1.PodLogOptions{})
		return err == nil && log == "ignoring\n"
	})
	// What others say about the Pod is kept.
	patch := []byte(`{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"Test"}]}}`)
	if err := f.Status().Patch(t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod = f.await(t, "pod", "it was killed", func(pod *corev1.Pod) bool {
		return pod.Status.ContainerStatuses[0].State.Terminated != nil
	})
	if code := pod.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 137 || pod.Status.Phase != corev1.PodFailed {
		t.Errorf("exit code %d, phase %s", code, pod.Status.Phase)
	}
	if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }) {
		t.Errorf("somebody else's condition was lost: %v", pod.Status.Conditions)
	}
	// Not an update: the node may still write the status.
	patch = []byte(`{"metadata":{"finalizers":null}}`)
	if err := f.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the Pod", func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func TestNodeRestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"stays", "goes"} {
		f.create(t, f.pod(name, corev1.Container{Env: as("serve")}))
	}
	stays := f.await(t, "stays", "it is ready", ready)
	goes := f.await(t, "goes", "it is ready", ready)
	f.stop()
	if answer := f.get(t, stays, "/"); strings.HasPrefix(answer, "{") {
		t.Error("a container outlives the node")
	}
	if err := f.Delete(t.Context(), goes, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	f.startNode(t)
	f.await(t, "stays", "it runs again", func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses[0]
		return s.RestartCount == 1 && s.State.Running != nil && s.LastTerminationState.Terminated != nil
	})
	eventually(t, "the end of the deleted Pod's directory", func(context.Context) (bool, error) {
		_, err := os.Stat(filepath.Join(f.dir, "pods", string(goes.UID)))
		return os.IsNotExist(err), nil
	})
}

// TestNodeThatSeemedGone writes what the node lifecycle controller does when the lease of a
// node is late. It leaves it to the node to say that this is over.
func TestNodeThatSeemedGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(t, f.pod("pod", corev1.Container{Env: as("serve")}))
	pod := f.await(t, "pod", "it is ready", ready)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	for object, patch := range map[client.Object]string{
		node: `{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}]}}`,
		pod:  `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`,
	} {
		if err := f.Status().Patch(t.Context(), object, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	f.await(t, "pod", "it is ready again", ready)
	eventually(t, "the node to be ready again", func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKeyFromObject(node), node)
		return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}), err
	})
}
