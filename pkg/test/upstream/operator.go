package upstream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// HubObjects are the objects of Hub, in the order in which they are created.
func HubObjects(tb testing.TB) []client.Object {
	tb.Helper()
	return objects(tb, hub)
}

// KlusterletObjects are the objects of a Klusterlet.
func KlusterletObjects(tb testing.TB, cluster string) []client.Object {
	tb.Helper()
	return objects(tb, strings.ReplaceAll(klusterlet, "CLUSTER", cluster))
}

// operated is how often a simulated operator looks.
const operated = 50 * time.Millisecond

// Operate does what an operator of OCM does until the test ends or stop is called:
// while its Deployment exists with its own arguments, what it applies is created again
// when it is missing, and the spec of a Deployment is put back when it was changed.
// Webhook configurations wait until the Deployments are available.
func Operate(tb testing.TB, admin client.Client, operator string, applied []client.Object) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			for _, obj := range applied {
				if !installed(obj, operator) && runs(ctx, admin, operator) && (!isHook(obj) || available(ctx, admin, applied)) {
					if err := restore(ctx, admin, obj); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
						tb.Errorf("OCM's operator, restoring %s: %v", obj.GetName(), err)
					}
				}
			}
			pause.For(ctx, clock.RealClock{}, operated)
		}
	})
	stop = func() {
		cancel()
		done.Wait()
	}
	tb.Cleanup(stop)
	return stop
}

// installed reports whether an object was installed with the operator, not by it.
func installed(obj client.Object, operator string) bool {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	return obj.GetNamespace() == names.OperatorNamespace || obj.GetName() == operator || kind == "ClusterManager" || kind == "Klusterlet"
}

func isHook(obj client.Object) bool {
	return strings.HasSuffix(obj.GetObjectKind().GroupVersionKind().Kind, "WebhookConfiguration")
}

// available reports whether every Deployment of an installation has a pod of the current
// spec.
func available(ctx context.Context, admin client.Client, applied []client.Object) bool {
	for _, obj := range applied {
		if obj.GetObjectKind().GroupVersionKind().Kind != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		err := admin.Get(ctx, client.ObjectKeyFromObject(obj), &d)
		if err != nil || d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas == 0 || d.Status.Replicas > d.Status.UpdatedReplicas || d.Status.AvailableReplicas == 0 {
			return false
		}
	}
	return true
}

// runs reports whether a Deployment runs OCM's operator.
func runs(ctx context.Context, admin client.Client, operator string) bool {
	var d appsv1.Deployment
	err := admin.Get(ctx, client.ObjectKey{Namespace: names.OperatorNamespace, Name: operator}, &d)
	return err == nil && d.DeletionTimestamp.IsZero() && slices.Contains(d.Spec.Template.Spec.Containers[0].Args, "/registration-operator")
}

// restore creates an object, or puts the spec of a Deployment back.
func restore(ctx context.Context, admin client.Client, obj client.Object) error {
	wanted, ok := obj.DeepCopyObject().(*unstructured.Unstructured)
	if !ok {
		return errors.ErrUnsupported
	}
	wanted.SetResourceVersion("")
	wanted.SetUID("")
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	err := admin.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if apimeta.IsNoMatchError(err) {
		return nil
	}
	if apierrors.IsNotFound(err) {
		if err := admin.Create(ctx, wanted); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	}
	if err != nil || wanted.GetKind() != "Deployment" || image(live) == image(wanted) {
		return err
	}
	live.Object["spec"] = wanted.Object["spec"]
	return admin.Update(ctx, live)
}

// image returns the image of the first container of a Deployment.
func image(deployment *unstructured.Unstructured) any {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return nil
	}
	container, _ := containers[0].(map[string]any)
	return container["image"]
}
