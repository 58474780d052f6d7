package takeover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

const cluster = "cluster1"

// TestTakeOver replaces OCM's hub and agent, which runs a workload, by this release, and
// has OCM's operator take the hub back.
func TestTakeOver(t *testing.T) {
	f := start(t)
	hub, managed := f.client(t, "hub"), f.client(t, cluster)
	f.must(t, "init", "--context", "hub", "--wait", "--feature-gates", "ManifestWorkReplicaSet=true")
	f.must(t, "join", "--hub-context", "hub", "--context", cluster, "--cluster-name", cluster, "--wait")
	createWork(t, hub, "app", deployment("app"), config("app"))
	awaitApplied(t, hub, "app")
	createSet(t, hub)
	createAddOn(t, hub)
	createTemplate(t, hub, managed)

	theirHub := disguise(t, hub, names.ClusterManagerOperator, names.HubNamespace, names.LabelCreatedByClusterManager, withWorkController(t, upstream.HubObjects(t)))
	theirAgent := disguise(t, managed, names.KlusterletOperator, names.AgentNamespace, names.LabelCreatedByKlusterlet, upstream.KlusterletObjects(t, cluster))
	disguiseTemplate(t, hub, managed)
	operate(t, hub, names.ClusterManagerOperator, theirHub)
	operate(t, managed, names.KlusterletOperator, theirAgent)
	before := state(t, hub, managed)
	requests := hammer(t, hub)

	t.Run("the plan is printed and nothing is written", func(t *testing.T) { testPlan(t, f) })
	t.Run("the hub", func(t *testing.T) {
		f.interrupted(t, func() { expectState(t, before, hub, managed) }, "init", "--context", "hub", "--take-over", "--accept-changes", "addon-templates,placements")
		requests.expect(t)
		awaitUngranted(t, hub)
		expectState(t, before, hub, managed)
		if found, err := origin.Hub(t.Context(), hub); err != nil || found != nil {
			t.Errorf("left: %v, %v", found, err)
		}
	})
	t.Run("the agent", func(t *testing.T) {
		f.interrupted(t, func() { expectState(t, before, hub, managed) }, "join", "--context", cluster, "--take-over")
		requests.expect(t)
		if found, err := origin.Agent(t.Context(), managed); err != nil || found != nil {
			t.Errorf("left: %v, %v", found, err)
		}
		awaitLease(t, hub)
	})
	t.Run("nothing that works deployed was touched, and new works are applied", func(t *testing.T) {
		createWork(t, hub, "later", config("later"))
		awaitApplied(t, hub, "later")
		extendSet(t, hub, managed)
		expectState(t, before, hub, managed)
	})
	t.Run("the commands of the guide succeed", func(t *testing.T) { testGuide(t, f) })
	t.Run("a second take-over finds nothing", func(t *testing.T) { testNothingLeft(t, f) })
	t.Run("the way back", func(t *testing.T) {
		hubBack(t, hub, theirHub)
		requests.expect(t)
		agentBack(t, managed, theirAgent)
		expectState(t, before, hub, managed)
	})
}

// testPlan checks the dry runs.
func testPlan(t *testing.T, f *fleet) {
	t.Helper()
	if r := f.run(t, "init", "--context", "hub", "--take-over"); r.code != 3 || !strings.Contains(r.stderr, "--accept-changes=addon-templates,placements") ||
		!strings.Contains(r.stderr, `bind on hubpermissions/currentcluster "templated:clusterrole:templated-role"`) {
		t.Errorf("without accepting: %+v", r)
	}
	text := f.must(t, "init", "--context", "hub", "--take-over", "--accept-changes", "placements,addon-templates", "--dry-run")
	for line := range strings.Lines(text) {
		if len(strings.TrimSuffix(line, "\n")) > 80 && len(strings.Fields(line)) > 3 {
			t.Errorf("too wide: %s", line)
		}
	}
	for _, part := range []string{"Replace OCM v1.3.1", " 1. Stop OCM's operator", "Install this release", "Delete the webhook configurations"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	var plan struct {
		From   string
		Before []struct{ Title string }
	}
	out := f.must(t, "join", "--context", cluster, "--take-over", "--dry-run", "-o", "json")
	if err := json.Unmarshal([]byte(out), &plan); err != nil || len(plan.Before) == 0 {
		t.Errorf("%v: %s", err, out)
	}
	if r := f.run(t, "init", "--context", "hub"); r.code != 3 || !strings.Contains(r.stderr, "--take-over") {
		t.Errorf("without the flag: %+v", r)
	}
}

// testGuide runs what docs/guides/migrate-from-ocm.md has a user run after a take-over.
func testGuide(t *testing.T, f *fleet) {
	t.Helper()
	guide, err := os.ReadFile("../../docs/guides/migrate-from-ocm.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(guide), "\n## After it\n")
	_, block, _ := strings.Cut(after, "```\n")
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.Lines(block) {
		args, found := strings.CutPrefix(strings.TrimSpace(line), "kubectl ocm ")
		if !found {
			t.Errorf("not a command: %s", line)
			continue
		}
		f.must(t, strings.Fields(args)...)
	}
}

// testNothingLeft checks that there is no plan any more.
func testNothingLeft(t *testing.T, f *fleet) {
	t.Helper()
	for _, command := range [][]string{{"init", "--context", "hub"}, {"join", "--context", cluster}} {
		if out := f.must(t, append(command, "--take-over", "--dry-run")...); !strings.Contains(out, "nothing of OCM to take over") {
			t.Errorf("%v: %s", command, out)
		}
	}
}

// hubBack is what docs/guides/migrate-from-ocm.md says about the way back of a hub.
func hubBack(t *testing.T, hub client.Client, theirs []client.Object) {
	t.Helper()
	removeDeployments(t, hub, names.OperatorNamespace, client.MatchingLabels{"app": names.ClusterManagerOperator})
	for _, service := range []string{"registration-webhook", "work-webhook"} { // OCM's operator issues them.
		certify(t, hub, service+"-serving-cert", "cluster-manager-"+service)
	}
	plant(t, hub, theirs, isComponent)
	eventually(t, "OCM's hub runs", func(ctx context.Context) error {
		found, err := origin.Hub(ctx, hub)
		if err != nil || found == nil || len(found.Components) < 6 || len(found.Webhooks) < 4 {
			return fmt.Errorf("%+v, %w", found, err)
		}
		return nil
	})
	each(t, hub, &appsv1.DeploymentList{}, client.InNamespace(names.HubNamespace), func(obj client.Object) error { return awaitAvailable(t, hub, obj) })
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}, &admissionregistrationv1.ValidatingAdmissionPolicyList{},
	} {
		each(t, hub, list, client.HasLabels{names.LabelCreatedByClusterManager}, func(obj client.Object) error { return hub.Delete(t.Context(), obj) })
	}
}

// agentBack is what it says about that of a managed cluster.
func agentBack(t *testing.T, managed client.Client, theirs []client.Object) {
	t.Helper()
	removeDeployments(t, managed, names.OperatorNamespace, client.MatchingLabels{"app": names.KlusterletOperator})
	plant(t, managed, theirs, isComponent)
	eventually(t, "OCM's agents run", func(ctx context.Context) error {
		found, err := origin.Agent(ctx, managed)
		if err != nil || found == nil || len(found.Components) < 2 {
			return fmt.Errorf("%+v, %w", found, err)
		}
		return nil
	})
	each(t, managed, &appsv1.DeploymentList{}, client.InNamespace(names.AgentNamespace), func(obj client.Object) error { return awaitAvailable(t, managed, obj) })
}

func config(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data: map[string]string{"key": "value"},
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example/workload:v1", Args: []string{"/workload"}}}},
			},
		},
	}
}

func createWork(t *testing.T, hub client.Client, name string, objs ...runtime.Object) {
	t.Helper()
	if err := hub.Create(t.Context(), work(name, objs...)); err != nil {
		t.Fatal(err)
	}
}

func work(name string, objs ...runtime.Object) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	for _, obj := range objs {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Object: obj}})
	}
	return w
}

func awaitApplied(t *testing.T, hub client.Client, name string) {
	t.Helper()
	eventually(t, "the work "+name+" is applied and available", func(ctx context.Context) error {
		var w workv1.ManifestWork
		if err := hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, &w); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(w.Status.Conditions, workv1.WorkApplied) || !apimeta.IsStatusConditionTrue(w.Status.Conditions, workv1.WorkAvailable) {
			return fmt.Errorf("%+v", w.Status.Conditions)
		}
		return nil
	})
}

// addOn reads the add-on in a version.
func addOn(version string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("addon.open-cluster-management.io/" + version)
	obj.SetKind("ManagedClusterAddOn")
	obj.SetNamespace(cluster)
	obj.SetName("sample")
	return obj
}

func createAddOn(t *testing.T, hub client.Client) {
	t.Helper()
	obj := addOn("v1beta1")
	_ = unstructured.SetNestedMap(obj.Object, map[string]any{}, "spec")
	if err := hub.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// awaitLease waits until the agent of now has renewed the lease. An agent that starts
// does that when the last renewal is older than the lease is long, so it is made short.
func awaitLease(t *testing.T, hub client.Client) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"leaseDurationSeconds": 1}}`))
	if err := hub.Patch(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, patch); err != nil {
		t.Fatal(err)
	}
	var first coordinationv1.Lease
	key := client.ObjectKey{Namespace: cluster, Name: names.ManagedClusterLease}
	if err := hub.Get(t.Context(), key, &first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lease is renewed, and the cluster available", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		var mc clusterv1.ManagedCluster
		if err := errors.Join(hub.Get(ctx, key, &lease), hub.Get(ctx, client.ObjectKey{Name: cluster}, &mc)); err != nil {
			return err
		}
		if !lease.Spec.RenewTime.After(first.Spec.RenewTime.Time) || !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
			return fmt.Errorf("%v %+v", lease.Spec.RenewTime, mc.Status.Conditions)
		}
		return nil
	})
}

// expectState checks that a take-over left what it must.
func expectState(t *testing.T, before map[string]string, hub, managed client.Client) {
	t.Helper()
	if diff := cmp.Diff(before, state(t, hub, managed)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// state is what a take-over must leave as it is.
func state(t *testing.T, hub, managed client.Client) map[string]string {
	t.Helper()
	out := map[string]string{"the set": setState(t, hub, managed)}
	maps.Copy(out, deployed(t, managed))
	maps.Copy(out, templateState(t, hub, managed))
	read := func(c client.Client, key client.ObjectKey, obj client.Object) {
		if err := c.Get(t.Context(), key, obj); err != nil {
			t.Fatal(err)
		}
	}
	var secret, ca corev1.Secret
	read(managed, client.ObjectKey{Namespace: names.AgentNamespace, Name: names.HubKubeconfigSecret}, &secret)
	out["the agent's identity"] = fmt.Sprint(string(secret.Data[names.KeyAgentName]), " ", string(secret.Data[names.KeyClusterName]), string(secret.Data[names.KeyKubeconfig]), secret.UID)
	out["its certificate"] = string(secret.Data[names.KeyTLSCert])
	read(hub, client.ObjectKey{Namespace: names.HubNamespace, Name: "signer-secret"}, &ca)
	out["the CA of the webhooks"] = string(ca.Data[corev1.TLSCertKey])
	var k operatorv1.Klusterlet
	read(managed, client.ObjectKey{Name: names.KlusterletName}, &k)
	out["the Klusterlet"] = string(k.UID)
	var mc clusterv1.ManagedCluster
	read(hub, client.ObjectKey{Name: cluster}, &mc)
	out["the cluster"] = fmt.Sprint(mc.UID, mc.Spec.HubAcceptsClient)
	return out
}

// deployed is what works have on the managed cluster.
func deployed(t *testing.T, managed client.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	var d appsv1.Deployment
	var c corev1.ConfigMap
	var pods corev1.PodList
	var applied workv1.AppliedManifestWorkList
	app := client.ObjectKey{Namespace: "default", Name: "app"}
	err := errors.Join(managed.Get(t.Context(), app, &d), managed.Get(t.Context(), app, &c),
		managed.List(t.Context(), &pods, client.InNamespace("default")), managed.List(t.Context(), &applied))
	if err != nil {
		t.Fatal(err)
	}
	out["the workload"] = fmt.Sprint(d.UID, " ", d.ResourceVersion)
	out["its configuration"] = fmt.Sprint(c.UID, " ", c.ResourceVersion, " ", c.OwnerReferences)
	for i := range pods.Items {
		out["pod "+pods.Items[i].Name] = string(pods.Items[i].UID)
	}
	for i := range applied.Items {
		if w := &applied.Items[i]; w.Spec.ManifestWorkName == "app" || w.Spec.ManifestWorkName == set {
			out["applied "+w.Name] = fmt.Sprint(w.UID, " ", w.Spec, " ", w.Status.EvictionStartTime)
		}
	}
	return out
}

// answers counts the requests that the hub answered, and keeps those that it did not.
type answers struct {
	good atomic.Int64

	mu     sync.Mutex
	failed []string
}

// expect checks that requests were sent since the last time, and none failed.
func (a *answers) expect(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.good.Swap(0) == 0 {
		t.Error("nothing was asked")
	}
	if len(a.failed) > 0 {
		t.Errorf("%d requests failed, the first: %s", len(a.failed), a.failed[0])
	}
	a.failed = nil
}

// hammer sends the requests that the hub's webhooks see, one after the other, until the
// test ends.
func hammer(t *testing.T, hub client.Client) *answers {
	t.Helper()
	a := &answers{}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			a.note(ctx, "label the cluster", label(ctx, hub, n))
			a.note(ctx, "create a work", hub.Create(ctx, work("dry", config("dry")), client.DryRunAll))
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				obj := addOn(version)
				a.note(ctx, "read an add-on in "+version, hub.Get(ctx, client.ObjectKeyFromObject(obj), obj))
			}
			pause.For(ctx, clock.RealClock{}, 50*time.Millisecond)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return a
}

func (a *answers) note(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		a.good.Add(1)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = append(a.failed, what+": "+err.Error())
}

func label(ctx context.Context, hub client.Client, n int) error {
	patch := []byte(`{"metadata":{"labels":{"hammer":"` + strconv.Itoa(n) + `"}}}`)
	return hub.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, client.RawPatch(types.MergePatchType, patch))
}
