package apply_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
)

// counted returns a client over fake objects and the number of its writes.
func counted(objs ...client.Object) (client.WithWatch, *atomic.Int64) {
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

func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "a"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: labels},
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

func role(verbs ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
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
	c, writes := counted()
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	objs := []client.Object{role("get"), deployment()}

	changes, err := applier.Apply(t.Context(), objs...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]apply.Action{apply.Created, apply.Created}, actions(changes)); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	before := writes.Load()
	changes, err = applier.Apply(t.Context(), objs...)
	if err != nil {
		t.Fatal(err)
	}
	if changes.Changed() || writes.Load() != before {
		t.Errorf("second: %v with %d writes", changes, writes.Load()-before)
	}
	changes, err = applier.Apply(t.Context(), role("get", "list"), deployment())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]apply.Action{apply.Configured, apply.Unchanged}, actions(changes)); diff != "" {
		t.Errorf("third (-want +got):\n%s", diff)
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
		{"a default was set", func(d *appsv1.Deployment) { d.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst }, apply.Unchanged},
		{"somebody labelled it", func(d *appsv1.Deployment) { d.Labels["mine"] = "yes" }, apply.Unchanged},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, _ := counted()
			applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
			if _, err := applier.Apply(t.Context(), deployment()); err != nil {
				t.Fatal(err)
			}
			live := &appsv1.Deployment{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment()), live); err != nil {
				t.Fatal(err)
			}
			tc.change(live)
			if err := c.Update(t.Context(), live, client.FieldOwner("somebody")); err != nil {
				t.Fatal(err)
			}
			changes, err := applier.Apply(t.Context(), deployment())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]apply.Action{tc.want}, actions(changes)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if changes, err = applier.Apply(t.Context(), deployment()); err != nil || changes.Changed() {
				t.Errorf("again: %v, %v", changes, err)
			}
		})
	}
}

func TestApplyRemovesWhatIsNoLongerDesired(t *testing.T) {
	t.Parallel()
	c, _ := counted()
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Data: map[string]string{"a": "1", "b": "2"}}
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
	c, writes := counted()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
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
	if writes.Load() != 2 {
		t.Errorf("%d writes, want one each", writes.Load())
	}
}

func TestApplyReplacesImmutable(t *testing.T) {
	t.Parallel()
	c, _ := counted()
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "old"},
	}
	if _, err := applier.Apply(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	binding.RoleRef.Name = "new"
	if _, err := applier.Apply(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	live := &rbacv1.ClusterRoleBinding{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(binding), live); err != nil || live.RoleRef.Name != "new" {
		t.Errorf("%v, %v", live.RoleRef, err)
	}
}

func TestStringDataIsComparedAsData(t *testing.T) {
	t.Parallel()
	c, writes := counted()
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, StringData: map[string]string{"k": "v"}}
	for range 2 {
		if _, err := applier.Apply(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	live := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), live); err != nil || string(live.Data["k"]) != "v" {
		t.Errorf("%v, %v", live.Data, err)
	}
	if writes.Load() != 1 {
		t.Errorf("%d writes, want 1", writes.Load())
	}
	if secret.Data != nil {
		t.Error("the given object was modified")
	}
}
