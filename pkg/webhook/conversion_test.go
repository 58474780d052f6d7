package webhook_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/servingcert"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
)

var (
	alpha = schema.GroupVersion{Group: conversion.Group, Version: conversion.V1alpha1}
	beta  = schema.GroupVersion{Group: conversion.Group, Version: conversion.V1beta1}
)

const kubeSigner = "kubernetes.io/kube-apiserver-client"

func rules() servingcert.Rules {
	return servingcert.DefaultRules(names.AddOnWebhookService, names.HubNamespace)
}

func addOn(gv schema.GroupVersion, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	obj.SetGroupVersionKind(gv.WithKind("ManagedClusterAddOn"))
	obj.SetNamespace("default")
	obj.SetName(name)
	return obj
}

func listOf(gv schema.GroupVersion) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gv.WithKind("ManagedClusterAddOnList"))
	return list
}

// read reads an add-on in a version.
func (h *hub) read(t *testing.T, gv schema.GroupVersion, name string) *unstructured.Unstructured {
	t.Helper()
	obj := addOn(gv, name)
	if err := h.admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// alphaStatus is a status of which half has no place in v1beta1.
func alphaStatus() map[string]any {
	return map[string]any{
		"addOnConfiguration": map[string]any{"crdName": "old", "crName": "one", "lastObservedGeneration": int64(7)},
		"kubeClientDriver":   "token",
		"registrations": []any{
			map[string]any{"signerName": kubeSigner, "subject": map[string]any{"user": "u", "organizationUnit": []any{"unit"}}},
			map[string]any{"signerName": "example.com/signer", "subject": map[string]any{"user": "v", "organizationUnit": []any{"unit"}}},
		},
		"configReferences": []any{
			map[string]any{"group": "g", "resource": "r", "name": "one", "namespace": "ns"},
		},
		"healthCheck": map[string]any{"mode": "Lease"},
	}
}

func (h *hub) create(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	status := obj.Object["status"]
	if err := h.admin.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if status == nil {
		return
	}
	obj.Object["status"] = status
	if err := h.admin.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func setNested(t *testing.T, obj *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

func nested(t *testing.T, obj *unstructured.Unstructured, path ...string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestClientsOfBothVersions uses the API as clients of both versions do.
func TestClientsOfBothVersions(t *testing.T) {
	t.Parallel()
	h := newHub(t, rules())
	h.runWebhook(t)
	watching, err := h.admin.Watch(t.Context(), listOf(alpha))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watching.Stop)

	old := addOn(alpha, "old")
	setNested(t, old, "somewhere", "spec", "installNamespace")
	old.Object["status"] = alphaStatus()
	h.create(t, old)
	inOrder(t,
		step{"nothing is lost", func(t *testing.T) {
			t.Helper()
			if diff := cmp.Diff(alphaStatus(), h.read(t, alpha, "old").Object["status"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}},
		step{"a new client sees its own API", func(t *testing.T) {
			t.Helper()
			obj := h.read(t, beta, "old")
			want := []any{
				map[string]any{"type": "kubeClient", "kubeClient": map[string]any{"driver": "token", "subject": map[string]any{"user": "u"}}},
				map[string]any{"type": "customSigner", "customSigner": map[string]any{
					"signerName": "example.com/signer", "subject": map[string]any{"user": "v", "organizationUnits": []any{"unit"}},
				}},
			}
			if diff := cmp.Diff(want, nested(t, obj, "status", "registrations")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := obj.GetAnnotations()[names.AnnotationInstallNamespace]; got != "somewhere" {
				t.Errorf("install namespace %q", got)
			}
		}},
		step{"a new client changes something else", func(t *testing.T) {
			t.Helper()
			obj := h.read(t, beta, "old")
			setNested(t, obj, "agent-namespace", "status", "namespace")
			if err := h.admin.Status().Update(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			want := alphaStatus()
			want["namespace"] = "agent-namespace"
			if diff := cmp.Diff(want, h.read(t, alpha, "old").Object["status"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}},
		step{"an old client patches", func(t *testing.T) {
			t.Helper()
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"configs":[{"group":"g","resource":"r","name":"n"}]}}`))
			if err := h.admin.Patch(t.Context(), addOn(alpha, "old"), patch); err != nil {
				t.Fatal(err)
			}
			obj := h.read(t, beta, "old")
			if got := nested(t, obj, "spec", "configs"); got == nil || obj.GetAnnotations()[names.AnnotationInstallNamespace] != "somewhere" {
				t.Errorf("%v", obj.Object)
			}
		}},
		step{"both apply", h.bothApply},
		step{"a new client's object", func(t *testing.T) {
			t.Helper()
			obj := addOn(beta, "new")
			obj.Object["status"] = map[string]any{"registrations": []any{
				map[string]any{"type": "kubeClient", "kubeClient": map[string]any{"driver": "csr", "subject": map[string]any{"user": "u"}}},
				map[string]any{"type": "kubeClient", "kubeClient": map[string]any{"driver": "token", "subject": map[string]any{"user": "w"}}},
			}}
			h.create(t, obj)
			before := nested(t, h.read(t, beta, "new"), "status", "registrations")
			inAlpha := h.read(t, alpha, "new")
			if got := nested(t, inAlpha, "status", "kubeClientDriver"); got != "csr" {
				t.Errorf("driver %v", got)
			}
			setNested(t, inAlpha, "x", "status", "namespace")
			if err := h.admin.Status().Update(t.Context(), inAlpha); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, nested(t, h.read(t, beta, "new"), "status", "registrations")); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		}},
		step{"lists", func(t *testing.T) {
			t.Helper()
			for i := range 5 {
				h.create(t, addOn(beta, fmt.Sprintf("more-%d", i)))
			}
			for _, gv := range []schema.GroupVersion{alpha, beta} {
				list := listOf(gv)
				if err := h.admin.List(t.Context(), list, client.InNamespace("default")); err != nil {
					t.Fatal(err)
				}
				if len(list.Items) != 7 || list.Items[0].GetAPIVersion() != gv.String() {
					t.Errorf("%d in %s", len(list.Items), gv)
				}
			}
		}},
		step{"watch", func(t *testing.T) {
			t.Helper()
			expectSeen(t, watching, "old", "new", "more-4")
		}},
		step{"add-ons of the hub", h.clusterManagementAddOns},
		step{"an agent in the old version", h.agentInAlpha},
		step{"what only the new version allows does not stop an old client", func(t *testing.T) {
			t.Helper()
			obj := addOn(beta, "allowed")
			obj.Object["status"] = map[string]any{
				"configReferences": []any{map[string]any{"group": "g", "resource": "r"}},
				"registrations":    []any{map[string]any{"type": "customSigner"}},
			}
			h.create(t, obj)
			before := h.read(t, beta, "allowed").Object["status"]
			patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"namespace":"x"}}`))
			if err := h.admin.Status().Patch(t.Context(), addOn(alpha, "allowed"), patch); err != nil {
				t.Fatal(err)
			}
			inBeta := h.read(t, beta, "allowed")
			unstructured.RemoveNestedField(inBeta.Object, "status", "namespace")
			if diff := cmp.Diff(before, inBeta.Object["status"]); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		}},
	)
}

// bothApply applies the same object from both versions, each its own fields.
func (h *hub) bothApply(t *testing.T) {
	t.Helper()
	inAlpha, inBeta := addOn(alpha, "old"), addOn(beta, "old")
	setNested(t, inAlpha, "elsewhere", "spec", "installNamespace")
	inBeta.SetLabels(map[string]string{"a": "b"})
	for range 2 {
		for manager, obj := range map[string]*unstructured.Unstructured{"old-client": inAlpha, "new-client": inBeta} {
			applied := client.ApplyConfigurationFromUnstructured(obj.DeepCopy())
			if err := h.admin.Apply(t.Context(), applied, client.FieldOwner(manager), client.ForceOwnership); err != nil {
				t.Fatal(err)
			}
		}
	}
	obj := h.read(t, alpha, "old")
	if got := nested(t, obj, "spec", "installNamespace"); got != "elsewhere" || obj.GetLabels()["a"] != "b" {
		t.Errorf("%v", obj.Object)
	}
}

func expectSeen(t *testing.T, watching watch.Interface, wanted ...string) {
	t.Helper()
	missing := map[string]bool{}
	for _, name := range wanted {
		missing[name] = true
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(missing) > 0 {
		select {
		case <-ctx.Done():
			t.Fatalf("not seen: %v", missing)
		case event := <-watching.ResultChan():
			obj, ok := event.Object.(*unstructured.Unstructured)
			if !ok || obj.GetAPIVersion() != alpha.String() {
				t.Fatalf("%v", event)
			}
			delete(missing, obj.GetName())
		}
	}
}

func (h *hub) clusterManagementAddOns(t *testing.T) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"addOnConfiguration": map[string]any{"crdName": "old"},
		"supportedConfigs": []any{
			map[string]any{"group": "g", "resource": "with", "defaultConfig": map[string]any{"name": "n", "namespace": "ns"}},
			map[string]any{"group": "g", "resource": "without"},
		},
	}}}
	obj.SetGroupVersionKind(alpha.WithKind("ClusterManagementAddOn"))
	obj.SetName("old")
	spec := obj.DeepCopy().Object["spec"]
	h.create(t, obj)
	inBeta := &unstructured.Unstructured{}
	inBeta.SetGroupVersionKind(beta.WithKind("ClusterManagementAddOn"))
	if err := h.admin.Get(t.Context(), client.ObjectKeyFromObject(obj), inBeta); err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{"group": "g", "resource": "with", "name": "n", "namespace": "ns"},
		map[string]any{"group": "g", "resource": "without", "name": names.ReservedNoDefaultConfig},
	}
	if diff := cmp.Diff(want, nested(t, inBeta, "spec", "defaultConfigs")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	inBeta.SetLabels(map[string]string{"a": "b"})
	if err := h.admin.Update(t.Context(), inBeta); err != nil {
		t.Fatal(err)
	}
	if err := h.admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	got := nested(t, obj, "spec")
	unstructured.RemoveNestedField(obj.Object, "spec", "installStrategy") // The CRD's default.
	if diff := cmp.Diff(spec, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// agentInAlpha has an agent use the old version to do what the admission rules,
// which are written for the new one, do not let it do.
func (h *hub) agentInAlpha(t *testing.T) {
	t.Helper()
	role := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{conversion.Group}, Resources: []string{"managedclusteraddons", "managedclusteraddons/status"}, Verbs: []string{"*"},
	}}}
	role.Name = "test-agent"
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:open-cluster-management:default"}},
	}
	binding.Name = role.Name
	for _, obj := range []client.Object{role, binding} {
		if err := h.admin.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	h.create(t, addOn(beta, "mine"))
	agent := h.ClientFor(t, h.ConfigFor(t, "system:open-cluster-management:default:agent", "system:open-cluster-management:default", "system:authenticated"))
	try := func(user string) error {
		obj := h.read(t, alpha, "mine")
		obj.Object["status"] = map[string]any{"kubeClientDriver": "token", "registrations": []any{
			map[string]any{"signerName": kubeSigner, "subject": map[string]any{"user": user}},
		}}
		return agent.Status().Update(t.Context(), obj)
	}
	if err := try("system:serviceaccount:kube-system:clusterrole-aggregation-controller"); !apierrors.IsForbidden(err) {
		t.Errorf("an agent that names somebody else: %v", err)
	}
	if err := try("system:serviceaccount:default:mine-agent"); err != nil {
		t.Errorf("an agent that names its add-on: %v", err)
	}
}

// TestWhileTheWebhookIsDown uses the API when nobody converts.
func TestWhileTheWebhookIsDown(t *testing.T) {
	t.Parallel()
	plane := controlplane.Start(t, controlplane.WithEgress())
	h := newHubOn(t, plane.ControlPlane, rules())
	stop := h.runWebhook(t)
	for _, name := range []string{"kept", "deleted"} {
		obj := addOn(alpha, name)
		setNested(t, obj, "somewhere", "spec", "installNamespace")
		obj.Object["status"] = alphaStatus()
		h.create(t, obj)
	}
	stop()
	h.setReady(t, corev1.ConditionFalse)
	h.expectConversion(t, metav1.ConditionTrue, clustermanager.ReasonUnavailableAddOnWebhookPod)

	// v1alpha1 fails, and says why.
	err := h.admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kept"}, addOn(alpha, "kept"))
	if err == nil || !strings.Contains(err.Error(), names.AddOnWebhookService) {
		t.Errorf("an add-on read in v1alpha1 without a webhook: %v", err)
	}
	if err := h.admin.Create(t.Context(), addOn(alpha, "never")); err == nil {
		t.Error("an add-on is created in v1alpha1 without a webhook")
	}
	// An API server that starts without the webhook gets ready.
	plane.StopAPIServer(t)
	plane.StartAPIServer(t)
	// v1beta1 goes on, also for what was written in v1alpha1.
	obj := h.read(t, beta, "kept")
	setNested(t, obj, "while-down", "status", "namespace")
	if err := h.admin.Status().Update(t.Context(), obj); err != nil {
		t.Errorf("status in v1beta1: %v", err)
	}
	obj.SetLabels(map[string]string{"a": "b"})
	if err := h.admin.Update(t.Context(), obj); err != nil {
		t.Errorf("update in v1beta1: %v", err)
	}
	h.create(t, addOn(beta, "new"))
	if err := h.admin.Delete(t.Context(), addOn(beta, "deleted")); err != nil {
		t.Errorf("delete in v1beta1: %v", err)
	}
	list := listOf(beta)
	if err := h.admin.List(t.Context(), list); err != nil || len(list.Items) != 2 {
		t.Errorf("list in v1beta1: %d, %v", len(list.Items), err)
	}
	applied := addOn(beta, "kept")
	applied.SetLabels(map[string]string{"c": "d"})
	err = h.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("somebody"))
	if err != nil {
		t.Errorf("server-side apply in v1beta1: %v", err)
	}

	h.runWebhook(t)
	want := alphaStatus()
	want["namespace"] = "while-down"
	back := h.read(t, alpha, "kept")
	if diff := cmp.Diff(want, back.Object["status"]); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	if got := nested(t, back, "spec", "installNamespace"); got != "somewhere" {
		t.Errorf("install namespace %v", got)
	}
}

// TestHubIsDeletedWithoutWebhook deletes a hub with add-ons whose webhook is
// gone first.
func TestHubIsDeletedWithoutWebhook(t *testing.T) {
	t.Parallel()
	h := newHub(t, rules())
	stop := h.runWebhook(t)
	h.create(t, addOn(alpha, "written-in-alpha"))
	h.create(t, addOn(beta, "written-in-beta"))
	h.clusterManagementAddOns(t)
	stop()
	h.setReady(t, corev1.ConditionFalse)
	cm := &unstructured.Unstructured{}
	cm.SetAPIVersion("operator.open-cluster-management.io/v1")
	cm.SetKind("ClusterManager")
	cm.SetName(names.ClusterManagerName)
	if err := h.admin.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		err := h.admin.Get(ctx, client.ObjectKeyFromObject(cm), cm)
		if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		if err == nil {
			return fmt.Sprintf("%v", nested(t, cm, "status", "conditions"))
		}
		namespace := &corev1.Namespace{}
		err = h.admin.Get(ctx, client.ObjectKey{Name: names.HubNamespace}, namespace)
		if client.IgnoreNotFound(err) == nil && err != nil {
			return ""
		}
		return fmt.Sprintf("namespace: %v", namespace.Status)
	})
}

// TestUpgradeFromUpstream takes over a hub that stores v1alpha1.
func TestUpgradeFromUpstream(t *testing.T) {
	t.Parallel()
	h := newHub(t, rules())
	stop := h.runWebhook(t)
	h.stopOperator()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := h.admin.Get(t.Context(), client.ObjectKey{Name: conversion.CRDs()[1]}, crd); err != nil {
		t.Fatal(err)
	}
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == conversion.V1alpha1
	}
	if err := h.admin.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		if err := h.admin.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err.Error()
		}
		if !slices.Contains(crd.Status.StoredVersions, conversion.V1alpha1) {
			return "v1alpha1 is not stored yet"
		}
		return ""
	})
	obj := addOn(alpha, "old")
	obj.Object["status"] = alphaStatus()
	h.create(t, obj)
	h.runOperator(t, rules())
	eventually(t, func(ctx context.Context) string {
		if err := h.admin.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err.Error()
		}
		if !crd.Spec.Versions[1].Storage {
			return "v1beta1 is not stored again"
		}
		return ""
	})
	inBeta := h.read(t, beta, "old")
	if err := h.admin.Update(t.Context(), inBeta); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(alphaStatus(), h.read(t, alpha, "old").Object["status"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Once written, it needs the webhook no more.
	stop()
	h.read(t, beta, "old")
}
