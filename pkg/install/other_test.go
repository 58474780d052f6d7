package install_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

func newRunner(t *testing.T, cp *controlplane.ControlPlane) *install.Runner {
	t.Helper()
	c, err := client.NewWithWatch(cp.Config(t), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(cp.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return &install.Runner{
		Client: c, Discovery: disco, Clock: clock.RealClock{}, Target: cp.Config(t).Host,
		// What --force sets.
		Skip: install.Checks(),
		Step: func(ctx context.Context, _ string, fn func(context.Context, install.Say) error) error {
			return fn(ctx, func(string, ...any) {})
		},
	}
}

// contents are what an installation would write.
func contents(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, kind := range []string{
		"apps/v1 Deployment", "v1 Namespace", "v1 Secret", "v1 ServiceAccount", "v1 Service",
		"rbac.authorization.k8s.io/v1 ClusterRole", "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
		"apiextensions.k8s.io/v1 CustomResourceDefinition", "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
		"operator.open-cluster-management.io/v1 ClusterManager", "operator.open-cluster-management.io/v1 Klusterlet",
	} {
		version, name, _ := strings.Cut(kind, " ")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(name + "List")
		if err := c.List(t.Context(), list); err != nil && !install.Gone(err) {
			t.Fatal(err)
		}
		for i := range list.Items {
			obj := &list.Items[i]
			if !named(obj) {
				continue
			}
			// The control plane's own controllers write statuses.
			unstructured.RemoveNestedField(obj.Object, "status")
			unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
			if len(obj.GetAnnotations()) == 0 {
				obj.SetAnnotations(nil)
			}
			obj.SetManagedFields(nil)
			obj.SetResourceVersion("")
			content, err := obj.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			out[kind+" "+obj.GetNamespace()+"/"+obj.GetName()] = string(content)
		}
	}
	return out
}

// named reports whether an object is OCM's by its name, and not one that the
// control plane itself makes.
func named(obj client.Object) bool {
	path := obj.GetNamespace() + "/" + obj.GetName()
	return obj.GetName() != "default" && (strings.Contains(path, "open-cluster-management") ||
		obj.GetName() == names.ClusterManagerOperator || obj.GetName() == names.KlusterletOperator)
}

// TestOthersHubIsRefused is about "clusteradm init" having been there first.
func TestOthersHubIsRefused(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	r := newRunner(t, cp)
	upstream.Hub(t, r.Client)
	before := contents(t, r.Client)
	_, err := r.Init(t.Context(), install.Hub{Workload: install.Workload{Image: "example/kubectl-ocm:v1"}}, bootstrap.ClusterInfo{Server: "https://hub.example"})
	refused, ok := errors.AsType[*install.PreflightError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	if refused.Skippable() {
		t.Error("the refusal can be skipped")
	}
	for _, part := range []string{
		"open-cluster-management/cluster-manager", upstream.OperatorImage,
		"end cluster-manager-placement-controller, cluster-manager-registration-webhook, cluster-manager-work-webhook",
		"manifestworkvalidators.admission.work.open-cluster-management.io",
		"rejects every write of ManagedClusters and ManifestWorks",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal does not name %s: %v", part, err)
		}
	}
	if diff := cmp.Diff(before, contents(t, r.Client)); diff != "" {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}
}

// TestOthersAgentIsRefused is about "clusteradm join" having been there first.
func TestOthersAgentIsRefused(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	r := newRunner(t, cp)
	upstream.Klusterlet(t, r.Client, "cluster1")
	before := contents(t, r.Client)
	k := install.Klusterlet{ClusterName: "cluster1", Bootstrap: []byte("{}")}
	_, err := r.Join(t.Context(), k, nil)
	for _, err := range []error{err, r.RefuseOthersAgent(t.Context())} {
		if _, ok := errors.AsType[*install.PreflightError](err); !ok {
			t.Fatalf("got %v", err)
		}
		for _, part := range []string{"open-cluster-management/klusterlet", upstream.OperatorImage, upstream.WorkAgent, "join --take-over"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the refusal does not name %s: %v", part, err)
			}
		}
	}
	if diff := cmp.Diff(before, contents(t, r.Client)); diff != "" {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}
}

// TestOwnInstallationIsNoOther re-runs init and join over what they installed,
// also over what the first builds installed and over what a pipeline applied
// from a rendering, without any mark of ours.
func TestOwnInstallationIsNoOther(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	r := newRunner(t, cp)
	hub, info := install.Hub{}, bootstrap.ClusterInfo{Server: "https://hub.example"}
	agent := install.Klusterlet{ClusterName: "cluster1", Bootstrap: []byte("{}")}
	again := func(when string) {
		t.Helper()
		if _, err := r.Init(t.Context(), hub, info); err != nil {
			t.Errorf("init %s: %v", when, err)
		}
		if _, err := r.Join(t.Context(), agent, nil); err != nil {
			t.Errorf("join %s: %v", when, err)
		}
	}
	again("at first")
	again("again")
	for _, name := range []string{names.ClusterManagerOperator, names.KlusterletOperator} {
		var d appsv1.Deployment
		if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: names.OperatorNamespace, Name: name}, &d); err != nil {
			t.Fatal(err)
		}
		patch := client.MergeFrom(d.DeepCopy())
		d.Annotations = nil
		d.Spec.Template.Spec.Containers[0].Image = "mirror.example/ocm/registration:v1"
		if err := r.Client.Patch(t.Context(), &d, patch); err != nil {
			t.Fatal(err)
		}
	}
	again("over a copy without marks")
}
