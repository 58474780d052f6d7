package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestKilled kills -9 every process of ours, and then the hub's API server.
// Everything comes back by itself, nothing is lost, nothing piles up.
func TestKilled(t *testing.T) {
	hub, managed := fleet.client(t, "hub"), fleet.client(t, "cluster2")
	awaitCondition(t, hub, "cluster2", clusterv1.ManagedClusterConditionAvailable)
	before := managedCluster(t, hub, "cluster2")

	pods := map[string][]corev1.Pod{}
	eventually(t, "the Pods of both operators, the hub's controllers and the agent, and no other", func(context.Context) error {
		pods["hub"], pods["cluster2"] = ourPods(t, hub), ourPods(t, managed)
		found := len(pods["hub"]) + len(pods["cluster2"])
		if want := replicas(t, hub) + replicas(t, managed); want < 4 || found != want {
			return fmt.Errorf("there are %d, want %d", found, want) // One may be on its way out.
		}
		return nil
	})
	for cluster, its := range pods {
		for i := range its {
			killPod(t, cluster, &its[i])
		}
	}
	awaitRestart(t, hub)
	awaitRestart(t, managed)
	killHub(t)
	killed := clock.RealClock{}.Now()

	eventually(t, "the agent renews its lease again", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := hub.Get(ctx, client.ObjectKey{Namespace: "cluster2", Name: names.ManagedClusterLease}, &lease); err != nil {
			return err
		}
		if lease.Spec.RenewTime == nil || !lease.Spec.RenewTime.After(killed) {
			return fmt.Errorf("last renewed at %v", lease.Spec.RenewTime)
		}
		return nil
	})
	awaitCondition(t, hub, "cluster2", clusterv1.ManagedClusterConditionAvailable)
	after := managedCluster(t, hub, "cluster2")
	if after.UID != before.UID || !after.Spec.HubAcceptsClient {
		t.Errorf("the cluster is another one: %v", after)
	}
}

func managedCluster(t *testing.T, hub client.Client, name string) *clusterv1.ManagedCluster {
	t.Helper()
	var cluster clusterv1.ManagedCluster
	if err := hub.Get(t.Context(), client.ObjectKey{Name: name}, &cluster); err != nil {
		t.Fatal(err)
	}
	return &cluster
}

// replicas is how many Pods run our binary on one cluster.
func replicas(t *testing.T, c client.Client) int {
	t.Helper()
	sum := 0
	for _, namespace := range ourNamespaces() {
		var list appsv1.DeploymentList
		if err := c.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Items {
			sum += int(d.Status.Replicas)
		}
	}
	return sum
}

func ourNamespaces() []string {
	return []string{names.OperatorNamespace, names.HubNamespace, names.AgentNamespace}
}

// ourPods are the Pods of one cluster that run our binary.
func ourPods(t *testing.T, c client.Client) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	for _, namespace := range ourNamespaces() {
		var list corev1.PodList
		if err := c.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, list.Items...)
	}
	return pods
}

func awaitRestart(t *testing.T, c client.Client) {
	t.Helper()
	eventually(t, "every container was started again", func(context.Context) error {
		for _, pod := range ourPods(t, c) {
			for _, s := range pod.Status.ContainerStatuses {
				if s.RestartCount == 0 || !s.Ready {
					return fmt.Errorf("%s: %d restarts, ready %v", pod.Name, s.RestartCount, s.Ready)
				}
			}
		}
		return nil
	})
}

// killHub sends SIGKILL to the hub's API server, which starts again.
func killHub(t *testing.T) {
	t.Helper()
	if fleet.dir == "" {
		killPods(t, "hub", metav1.NamespaceSystem, "kube-apiserver")
		return
	}
	hubURL, err := url.Parse(fleet.config(t, "hub").Host)
	if err != nil {
		t.Fatal(err)
	}
	kill(t, "--secure-port="+hubURL.Port())
}

// killPod sends SIGKILL to the process of a Pod, which starts again. On kind, the Pod's
// node is a container.
func killPod(t *testing.T, cluster string, pod *corev1.Pod) {
	t.Helper()
	if fleet.dir != "" {
		kill(t, "--bind-address="+pod.Status.PodIP)
		return
	}
	eventually(t, pod.Name+" on "+cluster+" is killed", func(ctx context.Context) error {
		_, id, ok := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
		if !ok {
			return errors.New("it has no container")
		}
		const script = `kill -KILL "$(crictl inspect --output go-template --template '{{.info.pid}}' "$1")"`
		out, err := exec.CommandContext(ctx, "docker", "exec", pod.Spec.NodeName, "sh", "-c", script, "kill", id).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
			// The container may have ended by itself, for another one.
			_ = fleet.client(t, cluster).Get(ctx, client.ObjectKeyFromObject(pod), pod)
		}
		return err
	})
}

// kill sends SIGKILL to the processes that have an argument, as soon as there
// is one; it may just be starting again.
func kill(t *testing.T, argument string) {
	t.Helper()
	eventually(t, "a process with the argument "+argument, func(context.Context) error {
		if killed := killAll(t, argument); killed == 0 {
			return errors.New("there is none")
		}
		return nil
	})
}

// killAll kills the processes that have an argument, and counts them.
func killAll(t *testing.T, argument string) int {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, path := range commands {
		line, err := os.ReadFile(path) // A process may end at any time.
		if err != nil || !bytes.Contains(append([]byte{0}, line...), []byte("\x00"+argument+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		killed++
	}
	return killed
}
