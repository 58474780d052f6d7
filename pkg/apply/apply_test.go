package apply_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
)

// requests counts what an applier sends to change objects, and what it only asks for.
type requests struct{ writes, dryRuns atomic.Int64 }

func (r *requests) count(dryRun []string) {
	if len(dryRun) > 0 {
		r.dryRuns.Add(1)
	} else {
		r.writes.Add(1)
	}
}

// counted returns a client of the shared control plane, a namespace of the test's
// own, and what the client sends.
func counted(t *testing.T) (c client.WithWatch, namespace string, sent *requests) {
	t.Helper()
	sent = &requests{}
	c = interceptor.NewClient(live(t, cp), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			sent.count((&client.ApplyOptions{}).ApplyOptions(opts).DryRun)
			return c.Apply(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			sent.count((&client.DeleteOptions{}).ApplyOptions(opts).DryRun)
			return c.Delete(ctx, obj, opts...)
		},
	})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "apply-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return c, ns.Name, sent
}

func deployment(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "a"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"disk": "ssd"},
					Containers: []corev1.Container{{
						Name: "c", Image: "i", Args: []string{"x", "y"},
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")}},
						Env:       []corev1.EnvVar{{Name: "A", Value: "1"}},
					}},
				},
			},
		},
	}
}

func role(namespace string, verbs ...string) *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs}},
	}
}

func actions(changes apply.ChangeSet) []apply.Action {
	var got []apply.Action
	for _, change := range changes {
		got = append(got, change.Action)
	}
	return got
}

func TestApplyWritesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	c, ns, sent := counted(t)
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	objs := []client.Object{role(ns, "get"), service("")(ns)}

	changes, err := applier.Apply(t.Context(), objs...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]apply.Action{apply.Created, apply.Created}, actions(changes)); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	for range 2 {
		if changes, err = applier.Apply(t.Context(), objs...); err != nil || changes.Changed() {
			t.Errorf("again: %v, %v", changes, err)
		}
	}
	if sent.writes.Load() != 2 || sent.dryRuns.Load() != 0 {
		t.Errorf("%d writes and %d dry runs, want 2 writes", sent.writes.Load(), sent.dryRuns.Load())
	}
	changes, err = applier.Apply(t.Context(), role(ns, "get", "list"), service("")(ns))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]apply.Action{apply.Configured, apply.Unchanged}, actions(changes)); diff != "" {
		t.Errorf("third (-want +got):\n%s", diff)
	}
}

// TestApplyAsksOnceAfterARestart: an applier that has seen nothing yet has the API
// server decide, once for each object.
func TestApplyAsksOnceAfterARestart(t *testing.T) {
	t.Parallel()
	c, ns, sent := counted(t)
	objs := []client.Object{role(ns, "get"), service("")(ns)}
	if _, err := (&apply.Applier{Client: c, FieldManager: "ocm.test"}).Apply(t.Context(), objs...); err != nil {
		t.Fatal(err)
	}
	restarted := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	for range 3 {
		if changes, err := restarted.Apply(t.Context(), objs...); err != nil || changes.Changed() {
			t.Errorf("%v, %v", changes, err)
		}
	}
	if sent.writes.Load() != 2 || sent.dryRuns.Load() != 2 {
		t.Errorf("%d writes and %d dry runs, want 2 of each", sent.writes.Load(), sent.dryRuns.Load())
	}
}

// TestApplyWithAStaleCache: what the cache shows too late is not drift.
func TestApplyWithAStaleCache(t *testing.T) {
	t.Parallel()
	c, ns, sent := counted(t)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}, Data: map[string]string{"a": "1"}}
	if _, err := (&apply.Applier{Client: c, FieldManager: "ocm.test"}).Apply(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	stale := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(config), stale); err != nil {
		t.Fatal(err)
	}
	labelled := stale.DeepCopy()
	labelled.Labels = map[string]string{"theirs": "yes"}
	if err := c.Update(t.Context(), labelled); err != nil {
		t.Fatal(err)
	}
	cached := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			got, ok := obj.(*corev1.ConfigMap)
			if !ok {
				t.Errorf("read a %T", obj)
			}
			stale.DeepCopyInto(got)
			return nil
		},
	})
	applier := &apply.Applier{Client: cached, Uncached: c, FieldManager: "ocm.test"}
	if changes, err := applier.Apply(t.Context(), config); err != nil || changes.Changed() || sent.writes.Load() != 1 {
		t.Errorf("%v, %v, %d writes", changes, err, sent.writes.Load())
	}
}

func TestApplyRepairsDrift(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*appsv1.Deployment)
		want   apply.Action
	}{
		{"an argument was removed", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{"x"} }, apply.Configured},
		{"an argument was added", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{"x", "y", "z"} }, apply.Configured},
		{"an image was changed", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" }, apply.Configured},
		{"an environment variable was changed", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Env[0].Value = "2" }, apply.Configured},
		{"a node selector was added", func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector["x"] = "y" }, apply.Configured},
		{"the label was removed", func(d *appsv1.Deployment) { d.Labels = nil }, apply.Configured},
		{"a sidecar was injected", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "sidecar", Image: "s"}}, d.Spec.Template.Spec.Containers...)
		}, apply.Unchanged},
		{"a quantity is written otherwise", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
		}, apply.Unchanged},
		{"a field was set that is not desired", func(d *appsv1.Deployment) { d.Spec.Template.Spec.DNSPolicy = corev1.DNSDefault }, apply.Unchanged},
		{"somebody labelled it", func(d *appsv1.Deployment) { d.Labels["mine"] = "yes" }, apply.Unchanged},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, ns, _ := counted(t)
			applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
			if _, err := applier.Apply(t.Context(), deployment(ns)); err != nil {
				t.Fatal(err)
			}
			err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // The Deployment controller writes the status.
				live := &appsv1.Deployment{}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment(ns)), live); err != nil {
					return err
				}
				tc.change(live)
				return c.Update(t.Context(), live, client.FieldOwner("somebody"))
			})
			if err != nil {
				t.Fatal(err)
			}
			changes, err := applier.Apply(t.Context(), deployment(ns))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]apply.Action{tc.want}, actions(changes)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if changes, err = applier.Apply(t.Context(), deployment(ns)); err != nil || changes.Changed() {
				t.Errorf("again: %v, %v", changes, err)
			}
		})
	}
}

func TestApplyRemovesWhatIsNoLongerDesired(t *testing.T) {
	t.Parallel()
	c, ns, _ := counted(t)
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}, Data: map[string]string{"a": "1", "b": "2"}}
	if _, err := applier.Apply(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	delete(config.Data, "b")
	changes, err := applier.Apply(t.Context(), config)
	if err != nil || !changes.Changed() {
		t.Fatalf("%v, %v", changes, err)
	}
	live := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(config), live); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, live.Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTwoManagersOfOneObjectAgree(t *testing.T) {
	t.Parallel()
	c, _, sent := counted(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apply-shared"}}
	labelled := namespace.DeepCopy()
	labelled.Labels = map[string]string{"owner": "operator"}
	cli := &apply.Applier{Client: c, FieldManager: "ocm.cli"}
	operator := &apply.Applier{Client: c, FieldManager: "ocm.operator"}
	for range 2 {
		if _, err := cli.Apply(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		if _, err := operator.Apply(t.Context(), labelled); err != nil {
			t.Fatal(err)
		}
	}
	if got := sent.writes.Load(); got != 2 {
		t.Errorf("%d writes, want one each", got)
	}
}

// TestApplyReplacesImmutable changes fields that the API server does not change.
func TestApplyReplacesImmutable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		old, desired func(namespace string) client.Object
	}{
		{"a Job's template", job("old"), job("new")},
		{"a RoleBinding's role", binding("old"), binding("new")},
		{"a Service's clusterIP", service(""), service(corev1.ClusterIPNone)},
		{"a Secret's type", secret("example.com/old"), secret("example.com/new")},
		{"a Deployment's selector", selecting("old"), selecting("new")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, ns, _ := counted(t)
			applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
			old, desired := tc.old(ns), tc.desired(ns)
			if _, err := applier.Apply(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			uid := uidOf(t, c, old)
			dry := &apply.Applier{Client: client.NewDryRunClient(c), FieldManager: "ocm.test", DryRun: true}
			for _, a := range []*apply.Applier{dry, applier} {
				changes, err := a.Apply(t.Context(), desired)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]apply.Action{apply.Replaced}, actions(changes)); diff != "" {
					t.Errorf("dry run %t (-want +got):\n%s", a.DryRun, diff)
				}
				if replaced := uidOf(t, c, old) != uid; replaced == a.DryRun {
					t.Errorf("dry run %t: replaced %t", a.DryRun, replaced)
				}
			}
			if changes, err := applier.Apply(t.Context(), desired); err != nil || changes.Changed() {
				t.Errorf("again: %v, %v", changes, err)
			}
		})
	}
}

// TestReplacementWaitsForTheOldObject: a finalizer keeps the old object for a while.
func TestReplacementWaitsForTheOldObject(t *testing.T) {
	t.Parallel()
	c, ns, _ := counted(t)
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	old, desired := binding("old")(ns), binding("new")(ns)
	old.SetFinalizers([]string{"test.example/wait"})
	if _, err := applier.Apply(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := applier.Apply(t.Context(), desired)
		if terminating := new(apply.TerminatingError); !errors.As(err, &terminating) {
			t.Fatalf("got %v", err)
		}
	}
	if err := c.Patch(t.Context(), old, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if _, err := applier.Apply(t.Context(), desired); err != nil {
		t.Fatal(err)
	}
	var got rbacv1.RoleBinding
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(desired), &got); err != nil || got.RoleRef.Name != "new" {
		t.Errorf("%v, %v", got.RoleRef, err)
	}
}

// TestInvalidIsNotReplaced: what the API server would not create either deletes nothing.
func TestInvalidIsNotReplaced(t *testing.T) {
	t.Parallel()
	c, ns, _ := counted(t)
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	old := binding("old")(ns)
	if _, err := applier.Apply(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	uid := uidOf(t, c, old)
	desired := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: old.GetName()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Unknown", Name: "new"},
	}
	if _, err := applier.Apply(t.Context(), desired); !apierrors.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
	if uidOf(t, c, old) != uid {
		t.Error("the object was replaced")
	}
}

func uidOf(t *testing.T, c client.Client, obj client.Object) types.UID {
	t.Helper()
	live, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T is no API object", obj)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), live); err != nil {
		t.Fatal(err)
	}
	return live.GetUID()
}

func job(image string) func(namespace string) client.Object {
	return func(namespace string) client.Object {
		return &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "j"},
			Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: image}},
			}}},
		}
	}
}

func binding(role string) func(namespace string) client.Object {
	return func(namespace string) client.Object {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
	}
}

func service(clusterIP string) func(namespace string) client.Object {
	return func(namespace string) client.Object {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"},
			Spec:       corev1.ServiceSpec{ClusterIP: clusterIP, Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
}

func secret(kind corev1.SecretType) func(namespace string) client.Object {
	return func(namespace string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}, Type: kind}
	}
}

func selecting(label string) func(namespace string) client.Object {
	return func(namespace string) client.Object {
		d := deployment(namespace)
		d.Spec.Selector.MatchLabels = map[string]string{"app": label}
		d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
		return d
	}
}

func TestStringDataIsComparedAsData(t *testing.T) {
	t.Parallel()
	c, ns, sent := counted(t)
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s"}, StringData: map[string]string{"k": "v"}}
	for range 2 {
		if _, err := applier.Apply(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	live := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), live); err != nil || string(live.Data["k"]) != "v" {
		t.Errorf("%v, %v", live.Data, err)
	}
	if got := sent.writes.Load(); got != 1 {
		t.Errorf("%d writes, want 1", got)
	}
	if secret.Data != nil {
		t.Error("the given object was modified")
	}
}
