package apply_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
)

// faked returns a client over fake objects and the number of its writes.
func faked(objs ...client.Object) (client.WithWatch, *atomic.Int64) {
	writes := &atomic.Int64{}
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objs...).
		WithIndex(&corev1.ConfigMap{}, "metadata.name", byName).
		WithIndex(&appsv1.Deployment{}, "metadata.name", byName).
		WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				writes.Add(1)
				return c.Apply(ctx, obj, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				writes.Add(1)
				return c.Delete(ctx, obj, opts...)
			},
		}).Build()
	return c, writes
}

func byName(obj client.Object) []string { return []string{obj.GetName()} }

// exists is done when the object exists.
func exists() apply.Check {
	return func(obj *unstructured.Unstructured) apply.Result {
		return apply.Result{Done: obj != nil, Message: "does not exist yet"}
	}
}

// The fake client does not replay what happened between a list and a watch, as
// an API server does, so the test changes objects only once a watch stands.
func TestWaitSeesTheObjectComeAndGo(t *testing.T) {
	t.Parallel()
	watching := make(chan struct{}, 10)
	base, _ := faked()
	c := interceptor.NewClient(base, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			watcher, err := c.Watch(ctx, list, opts...)
			watching <- struct{}{}
			return watcher, err
		},
	})
	seen := make(chan string, 10)
	waiter := &apply.Waiter{Client: c, Progress: func(object apply.Ref, message string) { seen <- object.String() + " " + message }}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	done := make(chan error, 1)
	wait := func(check apply.Check) {
		done <- waiter.Wait(t.Context(), apply.Target{Object: config, Check: check})
	}
	go wait(exists())
	<-watching
	if got := <-seen; got != "configmap ns/c does not exist yet" {
		t.Errorf("progress: %q", got)
	}
	if err := c.Create(t.Context(), config.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	go wait(apply.Gone())
	<-watching
	if err := c.Delete(t.Context(), config.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestWaitReportsWhyItTimedOut(t *testing.T) {
	t.Parallel()
	d := deployment("ns")
	d.Generation = 1
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1}
	c, _ := faked(d)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := (&apply.Waiter{Client: c}).Wait(ctx,
		apply.Target{Object: d, Check: apply.DeploymentReady()},
		apply.Target{Object: d, Check: exists()})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v does not wrap the context's error", err)
	}
	if want := "deployment.apps ns/a: 0 of 1 replicas are available"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestWaitEndsEarlyOnFailure(t *testing.T) {
	t.Parallel()
	d := deployment("ns")
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Progressing", Status: "False", Reason: "ProgressDeadlineExceeded", Message: "no luck"}}
	c, _ := faked(d)
	never := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "never"}}
	err := (&apply.Waiter{Client: c}).Wait(t.Context(),
		apply.Target{Object: never, Check: exists()},
		apply.Target{Object: d, Check: apply.DeploymentReady()})
	if !errors.Is(err, apply.ErrFailed) || !strings.Contains(err.Error(), "ProgressDeadlineExceeded") || strings.Contains(err.Error(), "never") {
		t.Errorf("got %v", err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "held", Finalizers: []string{"test/hold"}}}
	free := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "free"}}
	c, writes := faked(held.DeepCopy(), free.DeepCopy())
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	changes, err := applier.Delete(t.Context(), held, free)
	if err != nil {
		t.Fatal(err)
	}
	if got := changes.With(apply.Deleting); len(got) != 1 || got[0].Name != "held" {
		t.Errorf("deleting: %v", got)
	}
	if got := changes.With(apply.Deleted); len(got) != 1 || got[0].Name != "free" {
		t.Errorf("deleted: %v", got)
	}
	before := writes.Load()
	if changes, err = applier.Delete(t.Context(), held, free); err != nil || len(changes) != 1 || writes.Load() != before {
		t.Errorf("again: %v, %v, %d writes", changes, err, writes.Load()-before)
	}
	var terminating *apply.TerminatingError
	if _, err := applier.Apply(t.Context(), held); !errors.As(err, &terminating) {
		t.Errorf("apply of what is being deleted: %v", err)
	}
	live := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(held), live); err != nil {
		t.Fatal(err)
	}
	live.Finalizers = nil
	if err := c.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if changes, err = applier.DeleteAndWait(t.Context(), &apply.Waiter{Client: c}, held, free); err != nil || len(changes) != 0 {
		t.Errorf("gone: %v, %v", changes, err)
	}
}

func TestConditionLooksAtTheGeneration(t *testing.T) {
	t.Parallel()
	obj := func(generation, observed int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"generation": generation},
			"status": map[string]any{
				"observedGeneration": observed,
				"conditions":         []any{map[string]any{"type": "Applied", "status": "True"}},
			},
		}}
	}
	check := apply.Condition("Applied", "True")
	if result := check(obj(2, 2)); !result.Done {
		t.Errorf("current: %+v", result)
	}
	if result := check(obj(2, 1)); result.Done {
		t.Errorf("stale: %+v", result)
	}
	if result := check(nil); result.Done || result.Message == "" {
		t.Errorf("absent: %+v", result)
	}
}

func TestDeleteRemindsAStuckCRD(t *testing.T) {
	t.Parallel()
	crd := widgets("stuck.test", "1.0.0")
	crd.SetFinalizers([]string{"customresourcecleanup.apiextensions.k8s.io"})
	crd.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Terminating", "status": "True", "reason": "InstanceDeletionFailed"},
	}}
	c, _ := faked(crd)
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	for range 3 {
		if _, err := applier.Delete(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
	}
	live := crd.DeepCopy()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), live); err != nil {
		t.Fatal(err)
	}
	if live.GetAnnotations()[apply.HashAnnotationPrefix+"deletion-retry"] == "" {
		t.Error("the API server is not reminded")
	}
}
