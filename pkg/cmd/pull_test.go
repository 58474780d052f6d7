//go:build linux

package cmd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const patience = await.Patience

// setPods does what a kubelet would: Pods of an image run, or cannot be pulled.
func setPods(t *testing.T, admin client.Client, namespace, reason string, runs func(image string) bool) {
	t.Helper()
	await.Success(t, patience, "every Pod has a status", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := admin.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			c := pod.Spec.Containers[0]
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if !runs(c.Image) {
				pod.Status.Phase = corev1.PodPending
				pod.Status.Conditions = nil
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: c.Name, State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "no such host"},
				}}}
			}
			if err := admin.Status().Update(ctx, pod); err != nil {
				return err
			}
		}
		if len(pods.Items) == 0 {
			return fmt.Errorf("no Pod in %s", namespace)
		}
		return nil
	})
}

// TestImageCannotBePulled gives a hub that runs an image that does not exist:
// its old Pod still runs.
func TestImageCannotBePulled(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	config := kubeconfig(t, cp)
	const first, second = "registry.example/kubectl-ocm:v1", "registry.example/kubectl-ocm:v2"
	initialize := func(image string, args ...string) ran {
		return ocm(t, append([]string{"init", "--kubeconfig=" + config, "--allow-loopback", "--image=" + image}, args...)...)
	}
	if r := initialize(first); r.code != 0 || strings.Contains(r.out, "initialized successfully") {
		t.Fatalf("exit code %d: nothing runs yet: %s%s", r.code, r.out, r.err)
	}
	key := client.ObjectKey{Namespace: names.OperatorNamespace, Name: names.ClusterManagerOperator}
	awaitOperator := func(done func(*appsv1.Deployment) bool) {
		t.Helper()
		await.Success(t, patience, "the operator's Deployment follows", func(ctx context.Context) error {
			setPods(t, admin, names.OperatorNamespace, "ErrImagePull", func(image string) bool { return image == first })
			var d appsv1.Deployment
			if err := admin.Get(ctx, key, &d); err != nil || done(&d) {
				return err
			}
			return fmt.Errorf("%+v", d.Status)
		})
	}
	awaitOperator(func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == 1 })
	ended := make(chan ran, 1)
	go func() { ended <- initialize(second, "--wait", "--timeout=20s") }()
	awaitOperator(func(d *appsv1.Deployment) bool {
		return d.Spec.Template.Spec.Containers[0].Image == second && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1
	})
	setPods(t, admin, names.OperatorNamespace, "ErrImagePull", func(image string) bool { return image == first })
	const reason = "cannot pull the image " + second + " (ErrImagePull: no such host)"
	r := <-ended
	if !strings.Contains(r.err, reason) { // The machine is busy: its time was over before that.
		r = initialize(second, "--wait", "--timeout="+patience.String())
	}
	if r.code != 124 || strings.Count(r.err, reason) < 2 {
		t.Errorf("init: exit code %d, and it does not say %q while it waits and at the end: %s", r.code, reason, r.err)
	}
	r = ocm(t, "check", "hub", "--self-test=false", "--kubeconfig="+config)
	if !strings.Contains(r.out, "failed   the hub's operator runs") || !strings.Contains(r.out, reason) {
		t.Errorf("check hub does not fail with %q: %s", reason, r.out)
	}

	// With the second failed pull, init ends, and says what helps.
	go func() { ended <- initialize(second, "--wait", "--timeout="+patience.String()) }()
	failing := false
	await.Success(t, patience, "init ends", func(context.Context) error {
		failing = !failing
		pull := map[bool]string{true: "ErrImagePull", false: "ImagePullBackOff"}[failing]
		setPods(t, admin, names.OperatorNamespace, pull, func(image string) bool { return image == first })
		select {
		case r = <-ended:
			return nil
		default:
			return errors.New("it waits")
		}
	})
	if r.code != 1 || !strings.Contains(r.err, reason) || !strings.Contains(r.err, "--image") || !strings.Contains(r.err, "kind load") {
		t.Errorf("init: exit code %d: %s", r.code, r.err)
	}
}
