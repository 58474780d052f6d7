package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

func TestMain(m *testing.M) { controlplane.Main(m, &cp) }

// cp is the control plane of the tests that do not harm it.
var cp *controlplane.ControlPlane

func live(t *testing.T, cp *controlplane.ControlPlane) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(cp.Config(t), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// widgets is a CRD of its own for each test.
func widgets(group, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": "widgets." + group, "annotations": map[string]any{names.AnnotationVersion: version},
		},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": "Widget", "plural": "widgets"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}

func widget(group, namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": namespace, "name": "w"},
		"spec":     map[string]any{"size": int64(1), "parts": []any{map[string]any{"name": "a"}}},
	}}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestStagesLetOneCallInstallKindNamespaceAndObject(t *testing.T) {
	t.Parallel()
	applier := &apply.Applier{Client: live(t, cp), FieldManager: "ocm.test"}
	objs := []client.Object{widget("stages.test", "stages"), namespace("stages"), widgets("stages.test", "1.0.0")}
	changes, err := applier.Apply(t.Context(), objs...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]apply.Action{apply.Created, apply.Created, apply.Created}, actions(changes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if changes, err = applier.Apply(t.Context(), objs...); err != nil || changes.Changed() {
		t.Errorf("again: %v, %v", changes, err)
	}
}

func TestDryRunReportsAllAndChangesNothing(t *testing.T) {
	t.Parallel()
	c := live(t, cp)
	applier := &apply.Applier{Client: client.NewDryRunClient(c), FieldManager: "ocm.test", DryRun: true}
	changes, err := applier.Apply(t.Context(), widgets("dry.test", "1.0.0"), namespace("dry"), widget("dry.test", "dry"))
	if err != nil {
		t.Fatal(err)
	}
	if got := changes.With(apply.Created); len(got) != 3 {
		t.Errorf("created: %v", got)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "dry"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v", err)
	}
}

// TestDryRunPreviewsAReplacement changes what the API server holds immutable.
func TestDryRunPreviewsAReplacement(t *testing.T) {
	t.Parallel()
	c := live(t, cp)
	binding := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "dry-replaced"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "old"},
	}
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	if _, err := applier.Apply(t.Context(), binding, widgets("dryscope.test", "1.0.0")); err != nil {
		t.Fatal(err)
	}
	binding.RoleRef.Name = "new"
	crd := widgets("dryscope.test", "1.0.0")
	if err := unstructured.SetNestedField(crd.Object, "Cluster", "spec", "scope"); err != nil {
		t.Fatal(err)
	}
	dry := &apply.Applier{Client: client.NewDryRunClient(c), FieldManager: "ocm.test", DryRun: true}
	changes, err := dry.Apply(t.Context(), crd, binding)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]apply.Action{apply.Replaced, apply.Replaced}, actions(changes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var live rbacv1.ClusterRoleBinding
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(binding), &live); err != nil || live.RoleRef.Name != "old" {
		t.Errorf("%v, %v", live.RoleRef, err)
	}
}

func TestNewerCRDIsKept(t *testing.T) {
	t.Parallel()
	applier := &apply.Applier{Client: live(t, cp), FieldManager: "ocm.test"}
	for _, step := range []struct {
		version string
		want    apply.Action
	}{
		{"1.1.0", apply.Created}, {"1.0.9", apply.Kept}, {"1.1.0", apply.Unchanged}, {"v1.2.0", apply.Configured}, {"1.10.0", apply.Configured},
	} {
		changes, err := applier.Apply(t.Context(), widgets("newer.test", step.version))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]apply.Action{step.want}, actions(changes)); diff != "" {
			t.Errorf("version %s (-want +got):\n%s", step.version, diff)
		}
	}
}

// TestNewerCRDIsKeptWhereTheCacheDoesNotHoldIt: an operator's cache holds what
// carries its label only.
func TestNewerCRDIsKeptWhereTheCacheDoesNotHoldIt(t *testing.T) {
	t.Parallel()
	c := live(t, cp)
	if err := c.Create(t.Context(), widgets("unseen.test", "1.1.0")); err != nil {
		t.Fatal(err)
	}
	applier := &apply.Applier{Client: emptyCache{c}, Uncached: c, FieldManager: "ocm.test"}
	changes, err := applier.Apply(t.Context(), widgets("unseen.test", "1.0.9"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]apply.Action{apply.Kept}, actions(changes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// emptyCache is a client whose cache holds nothing.
type emptyCache struct{ client.WithWatch }

func (emptyCache) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: obj.GetObjectKind().GroupVersionKind().Kind}, key.Name)
}

// TestScopeOfACRD changes the scope of a CRD, which is immutable. A CRD without
// objects is replaced; one with objects is not.
func TestScopeOfACRD(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, group string
		cached      bool
	}{
		{"it is in the cache", "scope.test", true}, {"it is not in the cache", "scope-unseen.test", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := live(t, cp)
			admin := &apply.Applier{Client: c, FieldManager: "ocm.test"}
			held := widget(tc.group, "default")
			if _, err := admin.Apply(t.Context(), widgets(tc.group, "1.0.0"), held); err != nil {
				t.Fatal(err)
			}
			applier := &apply.Applier{Client: c, Uncached: c, FieldManager: "ocm.test"}
			if !tc.cached {
				applier.Client = emptyCache{c}
			}
			wider := widgets(tc.group, "1.0.0")
			if err := unstructured.SetNestedField(wider.Object, "Cluster", "spec", "scope"); err != nil {
				t.Fatal(err)
			}
			_, err := applier.Apply(t.Context(), wider)
			if err == nil || !strings.Contains(err.Error(), "default/w: delete them first") {
				t.Fatalf("with an object: %v", err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil {
				t.Fatalf("the object: %v", err)
			}
			if err := c.Delete(t.Context(), held); err != nil {
				t.Fatal(err)
			}
			await.Success(t, time.Minute, "the CRD is replaced", func(ctx context.Context) error {
				_, err := applier.Apply(ctx, wider)
				if terminating := new(apply.TerminatingError); err != nil && !errors.As(err, &terminating) {
					t.Fatal(err)
				}
				return err
			})
			crd := widgets(tc.group, "")
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
				t.Fatal(err)
			}
			if scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope"); scope != "Cluster" {
				t.Errorf("scope %s", scope)
			}
		})
	}
}

func TestConflictIsWonAndForeignFieldsStay(t *testing.T) {
	t.Parallel()
	c := live(t, cp)
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "conflict"},
		Data:       map[string]string{"ours": "1"},
	}
	other := &apply.Applier{Client: c, FieldManager: "somebody"}
	foreign := config.DeepCopy()
	foreign.Data = map[string]string{"ours": "2", "theirs": "3"}
	if _, err := other.Apply(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	changes, err := applier.Apply(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]apply.Action{apply.Configured}, actions(changes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(config), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"ours": "1", "theirs": "3"}, got.Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeleteAndWaitGoesBackwards(t *testing.T) {
	t.Parallel()
	c := live(t, cp)
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	objs := []client.Object{widgets("gone.test", "1.0.0"), namespace("gone"), widget("gone.test", "gone")}
	if _, err := applier.Apply(t.Context(), objs...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changes, err := applier.DeleteAndWait(ctx, &apply.Waiter{Client: c}, objs...)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 3 || changes[0].Object.Kind.Kind != "Widget" {
		t.Errorf("changes: %v", changes)
	}
	if changes, err = applier.DeleteAndWait(ctx, &apply.Waiter{Client: c}, objs...); err != nil || len(changes) != 0 {
		t.Errorf("again: %v, %v", changes, err)
	}
}

func TestWaitForAKindThatIsNotServedYet(t *testing.T) {
	t.Parallel()
	c := live(t, cp)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waiting := make(chan struct{})
	waiter := &apply.Waiter{Client: c, Progress: func(apply.Ref, string) {
		select {
		case <-waiting:
		default:
			close(waiting)
		}
	}}
	done := make(chan error, 1)
	go func() {
		done <- waiter.Wait(ctx, apply.Target{Object: widget("later.test", "default"), Check: exists()})
	}()
	<-waiting
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	if _, err := applier.Apply(ctx, widgets("later.test", "1.0.0"), widget("later.test", "default")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWaitEndsWhenReadingIsForbidden(t *testing.T) {
	t.Parallel()
	c, err := client.NewWithWatch(cp.ConfigFor(t, "nobody", "system:authenticated"), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
	err = (&apply.Waiter{Client: c}).Wait(t.Context(), apply.Target{Object: secret, Check: exists()})
	if !errors.Is(err, apply.ErrFailed) || !strings.Contains(err.Error(), `User "nobody" cannot list resource "secrets"`) {
		t.Errorf("got %v", err)
	}
}

// TestWaitSurvivesTheAPIServer kills the API server while an object is waited
// for; the change is made when it is back.
func TestWaitSurvivesTheAPIServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.Start(t)
	c := live(t, cp.ControlPlane)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	messages := make(chan string, 100)
	waiter := &apply.Waiter{Client: c, Progress: func(_ apply.Ref, message string) { messages <- message }}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	done := make(chan error, 1)
	go func() { done <- waiter.Wait(ctx, apply.Target{Object: config, Check: exists()}) }()
	if got := <-messages; got != "does not exist yet" {
		t.Errorf("progress: %s", got)
	}
	cp.StopAPIServer(t)
	if got := <-messages; !strings.Contains(got, "refused") {
		t.Errorf("progress without an API server: %s", got)
	}
	cp.StartAPIServer(t)
	if err := c.Create(ctx, config.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
