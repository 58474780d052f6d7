package executor_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

// world is what an executor may and may not touch. It may do anything with ConfigMaps and
// RoleBindings of the namespace mine, and has no permission that the ClusterRole grants.
type world struct {
	admin        client.Client
	checker      *executor.Checker
	mine, theirs string
	// foreign are the objects that no ManifestWork of the executor may change, read or
	// delete, by what they are.
	foreign map[string]client.Object
	before  map[string]string
	// owner is who the objects of works belong to. It exists: the garbage collector deletes
	// the objects of owners that do not.
	owner metav1.OwnerReference
}

// kinds are what manifests may be.
var kinds = []struct {
	resource   schema.GroupVersionResource
	kind       string
	namespaced bool
}{
	{corev1.SchemeGroupVersion.WithResource("configmaps"), "ConfigMap", true},
	{corev1.SchemeGroupVersion.WithResource("secrets"), "Secret", true},
	{rbacv1.SchemeGroupVersion.WithResource("rolebindings"), "RoleBinding", true},
	{rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), "ClusterRoleBinding", false},
	{rbacv1.SchemeGroupVersion.WithResource("clusterroles"), "ClusterRole", false},
}

var updates = []workv1.UpdateStrategyType{
	workv1.UpdateStrategyTypeUpdate, workv1.UpdateStrategyTypeCreateOnly, workv1.UpdateStrategyTypeReadOnly, workv1.UpdateStrategyTypeServerSideApply,
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		admin: plane.Client(t), checker: checker(t), mine: place(t, "mine"), theirs: place(t, "theirs"), before: map[string]string{},
	}
	namespace := &corev1.Namespace{}
	if err := w.admin.Get(t.Context(), client.ObjectKey{Name: w.mine}, namespace); err != nil {
		t.Fatal(err)
	}
	w.owner = metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID}
	every := []string{"get", "create", "update", "patch", "delete"}
	allow(t, w.mine, "mine",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: every},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: every})
	admins := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	meta := func(namespace string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: "one"} }
	global := metav1.ObjectMeta{Name: w.theirs}
	w.foreign = map[string]client.Object{
		"their ConfigMap":                       &corev1.ConfigMap{ObjectMeta: meta(w.theirs), Data: map[string]string{"key": "theirs"}},
		"their Secret":                          &corev1.Secret{ObjectMeta: meta(w.theirs)},
		"a Secret of the executor's namespace":  &corev1.Secret{ObjectMeta: meta(w.mine)},
		"a RoleBinding of more than it has":     &rbacv1.RoleBinding{ObjectMeta: meta(w.mine), RoleRef: admins},
		"a ClusterRole":                         &rbacv1.ClusterRole{ObjectMeta: global},
		"a ClusterRoleBinding of a ClusterRole": &rbacv1.ClusterRoleBinding{ObjectMeta: global, RoleRef: admins},
	}
	for what, object := range w.foreign {
		installation.Create(t, w.admin, object)
		w.before[what] = w.state(t, object)
	}
	return w
}

// state is what must not change. RBAC lets an executor change the labels and owners of a
// RoleBinding that it may write, but not what that grants, and to whom.
func (w *world) state(t *testing.T, object client.Object) string {
	t.Helper()
	if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		return err.Error()
	}
	if binding, ok := object.(*rbacv1.RoleBinding); ok {
		return binding.RoleRef.String() + (&rbacv1.RoleBinding{Subjects: binding.Subjects}).String()
	}
	return object.GetResourceVersion()
}

// protected names the objects of the kinds that the executor may not create.
func (w *world) protected(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{}} {
		metadata := &metav1.PartialObjectMetadataList{}
		kind, err := w.admin.GroupVersionKindFor(list)
		if err != nil {
			t.Fatal(err)
		}
		metadata.SetGroupVersionKind(kind)
		if err := w.admin.List(t.Context(), metadata); err != nil {
			t.Fatal(err)
		}
		for i := range metadata.Items {
			all = append(all, kind.Kind+" "+metadata.Items[i].Namespace+"/"+metadata.Items[i].Name)
		}
	}
	return all
}

// FuzzEscape writes manifests of any kind, place and name, with any strategy and fields to
// ignore. What the executor may not touch stays as it is, and is not returned.
func FuzzEscape(f *testing.F) {
	var w *world
	for _, expression := range []string{
		".roleRef", ".metadata.name", ".kind", "..", `.x) | .metadata.name = "one" | del(.x`, `.data |= {}`,
		`.subjects[] | select(.name == "executor") | .name`, "/metadata", "/subjects/0", ".subjects[*].name", "['roleRef','x'].name",
	} {
		for kind := range kinds {
			for update := range updates {
				f.Add(uint8(kind), uint8(kind+update), uint8(update), uint8(update), uint8(kind+1), true, expression)
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind, namespace, name, update, paths uint8, force bool, expression string) {
		if w == nil {
			w = newWorld(t)
		}
		object := w.manifest(kind, namespace, name)
		field := workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokePresent}
		for i, list := range []*[]string{&field.JSONPaths, &field.JSONPointers, &field.JQPathExpressions} {
			if paths>>i&1 == 1 {
				*list = []string{expression}
			}
		}
		w.attempt(t, strategy.Request{
			Resource: kinds[int(kind)%len(kinds)].resource, Manifest: object, Owned: true,
			Owner: w.owner,
			Update: workv1.UpdateStrategy{
				Type:            updates[int(update)%len(updates)],
				ServerSideApply: &workv1.ServerSideApplyConfig{Force: force, IgnoreFields: []workv1.IgnoreField{field}},
			},
		})
	})
}

// manifest returns an object that the numbers choose. Its RBAC objects grant more than the
// executor has, or are bindings to what it has.
func (w *world) manifest(kind, namespace, name uint8) *unstructured.Unstructured {
	k := kinds[int(kind)%len(kinds)]
	object := &unstructured.Unstructured{Object: map[string]any{}}
	switch k.kind {
	case "ConfigMap", "Secret":
		object.Object["data"] = map[string]any{"key": "b25l"}
	case "ClusterRole":
		object.Object["rules"] = []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}}}
	default:
		object.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Role", "name": "mine"}
		object.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": w.mine, "name": "executor"}}
	}
	object.SetAPIVersion(k.resource.GroupVersion().String())
	object.SetKind(k.kind)
	object.SetName([]string{"one", "two", w.theirs}[int(name)%3])
	if k.namespaced {
		object.SetNamespace([]string{w.mine, w.theirs}[int(namespace)%2])
	}
	return object
}

// attempt does what the work agent does with a manifest, and looks at what has become of
// the world.
func (w *world) attempt(t *testing.T, r strategy.Request) {
	t.Helper()
	permission := executor.Request{Resource: r.Resource, Manifest: r.Manifest, Owned: true}
	existing := w.protected(t)
	// Whether a review stops it is another test's: this one looks at what is behind it.
	objects, err := w.checker.Client(runAs(w.mine), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&strategy.Applier{Client: objects}).Apply(t.Context(), r)
	if err == nil && w.checker.Check(t.Context(), runAs(w.mine), permission) != nil {
		t.Errorf("%s %s %s/%s was returned", r.Update.Type, got.Object.GetKind(), got.Object.GetNamespace(), got.Object.GetName())
	}
	for what, object := range w.foreign {
		if now := w.state(t, object); now != w.before[what] {
			t.Errorf("%s %s changed %s: %s, now %s", r.Update.Type, r.Manifest.GetKind(), what, w.before[what], now)
		}
	}
	if now := w.protected(t); !slices.Equal(existing, now) {
		t.Errorf("%s %s left %v, there were %v", r.Update.Type, r.Manifest.GetKind(), now, existing)
	}
}
