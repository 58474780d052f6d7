//go:build linux

package delivery_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/delivery"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

const patience = await.Patience

var cp *controlplane.ControlPlane

func TestMain(m *testing.M) { controlplane.Main(m, &cp) }

// newHub returns a hub with the CRDs of our manifests.
func newHub(t *testing.T) delivery.Hub {
	t.Helper()
	crds, err := manifests.RenderHubCRDs(manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace, Version: "0.0.0"})
	installation.Some(t, cp.Client(t), crds, err, installation.CRD)
	c, err := client.NewWithWatch(cp.Config(t), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return delivery.Hub{Client: c}
}

// addCluster makes an accepted cluster with a namespace. Without a status it never
// reported whether it is available.
func addCluster(t *testing.T, c client.Client, name, env string, available metav1.ConditionStatus) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}}}
	cluster.Spec.HubAcceptsClient = true
	for _, object := range []client.Object{cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if available == "" {
		return
	}
	apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: available, Reason: "Test",
	})
	if err := c.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// delivered is a work with one ConfigMap.
func delivered(name, value string) delivery.Delivery {
	raw := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"x"},"data":{"key":"` + value + `"}}`
	return delivery.Delivery{Name: name, Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}}}
}

// actions plans and carries out a delivery and returns what that did, by cluster.
func actions(t *testing.T, hub delivery.Hub, d delivery.Delivery, choice delivery.Choice) map[string]delivery.Action {
	t.Helper()
	targets, err := hub.Choose(t.Context(), d.Name, choice)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := hub.Plan(t.Context(), d, targets)
	if err != nil {
		t.Fatal(err)
	}
	done := map[string]delivery.Action{}
	for _, step := range steps {
		action, err := hub.Carry(t.Context(), d, step)
		if err != nil {
			t.Fatal(err)
		}
		done[step.Work.Namespace] = action
	}
	return done
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	addCluster(t, hub.Client, "rep-a", "rep", "")
	addCluster(t, hub.Client, "rep-b", "rep", metav1.ConditionTrue)
	addCluster(t, hub.Client, "rep-c", "rep", metav1.ConditionTrue)
	choice := func(n int) delivery.Choice {
		return delivery.Choice{Selector: labels.SelectorFromSet(labels.Set{"env": "rep"}), Replicas: n}
	}
	d := delivered("replicas", "1")

	// Clusters that are available come first.
	got := actions(t, hub, d, choice(1))
	if diff := cmp.Diff(map[string]delivery.Action{"rep-b": delivery.Create}, got); diff != "" {
		t.Error(diff)
	}
	// Those that have a copy stay.
	got = actions(t, hub, d, choice(2))
	if diff := cmp.Diff(map[string]delivery.Action{"rep-b": delivery.Unchanged, "rep-c": delivery.Create}, got); diff != "" {
		t.Error(diff)
	}
	if few, ok := errors.AsType[*delivery.TooFewError](chooseError(t, hub, choice(4))); !ok || few.Have != 3 {
		t.Errorf("four replicas on three clusters: %v", few)
	}

	// Fewer replicas leave a copy, which only overwriting deletes.
	targets, err := hub.Choose(t.Context(), d.Name, choice(1))
	if err != nil || !slices.Equal(targets.Clusters, []string{"rep-b"}) || !slices.Equal(targets.Left, []string{"rep-c"}) {
		t.Errorf("got %+v, %v", targets, err)
	}
	d.Overwrite = true
	got = actions(t, hub, d, choice(1))
	if diff := cmp.Diff(map[string]delivery.Action{"rep-b": delivery.Unchanged, "rep-c": delivery.Remove}, got); diff != "" {
		t.Error(diff)
	}
}

func chooseError(t *testing.T, hub delivery.Hub, choice delivery.Choice) error {
	t.Helper()
	_, err := hub.Choose(t.Context(), "any", choice)
	return err
}

func TestPlacement(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	choice := delivery.Choice{Placement: client.ObjectKey{Namespace: "default", Name: "placed"}}
	if _, ok := errors.AsType[*delivery.NoDecisionError](chooseError(t, hub, choice)); !ok {
		t.Error("a placement without decisions chooses something")
	}
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "placed-1", Labels: map[string]string{clusterv1beta1.PlacementLabel: "placed"},
	}}
	if err := hub.Client.Create(t.Context(), decision); err != nil {
		t.Fatal(err)
	}
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: "b"}, {ClusterName: "a"}}
	if err := hub.Client.Status().Update(t.Context(), decision); err != nil {
		t.Fatal(err)
	}
	if targets, err := hub.Choose(t.Context(), "any", choice); err != nil || !slices.Equal(targets.Clusters, []string{"a", "b"}) {
		t.Errorf("got %+v, %v", targets, err)
	}
}

func TestBlockedPlan(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	addCluster(t, hub.Client, "plan-a", "plan", metav1.ConditionTrue)
	addCluster(t, hub.Client, "plan-b", "plan", metav1.ConditionTrue)
	both := delivery.Choice{Clusters: []string{"plan-a", "plan-b"}}
	if unknown, ok := errors.AsType[*delivery.ClustersError](chooseError(t, hub, delivery.Choice{Clusters: []string{"plan-a", "nosuch"}})); !ok ||
		!unknown.Unknown || !slices.Equal(unknown.Clusters, []string{"nosuch"}) {
		t.Errorf("an unknown cluster: %v", unknown)
	}
	actions(t, hub, delivered("planned", "1"), delivery.Choice{Clusters: []string{"plan-b"}})

	// One copy with other manifests blocks all.
	_, err := hub.Plan(t.Context(), delivered("planned", "2"), delivery.Targets{Clusters: both.Clusters})
	if exists, ok := errors.AsType[*delivery.ExistsError](err); !ok || !slices.Equal(exists.Clusters, []string{"plan-b"}) {
		t.Errorf("got %v", err)
	}
	err = hub.Client.Get(t.Context(), client.ObjectKey{Namespace: "plan-a", Name: "planned"}, &workv1.ManifestWork{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a plan that is blocked has created a copy: %v", err)
	}

	// What another object owns is not overwritten.
	owned := &workv1.ManifestWork{}
	if err := hub.Client.Get(t.Context(), client.ObjectKey{Namespace: "plan-b", Name: "planned"}, owned); err != nil {
		t.Fatal(err)
	}
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "AddOn", Name: "a", UID: "1"}}
	owned.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	if err := hub.Client.Update(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	overwriting := delivered("planned", "2")
	overwriting.Overwrite = true
	_, err = hub.Plan(t.Context(), overwriting, delivery.Targets{Clusters: both.Clusters})
	if _, ok := errors.AsType[*delivery.OwnedError](err); !ok {
		t.Errorf("got %v", err)
	}
	owned.OwnerReferences = nil
	if err := hub.Client.Update(t.Context(), owned); err != nil {
		t.Fatal(err)
	}

	// Overwriting keeps the rest of the spec.
	got := actions(t, hub, overwriting, both)
	if diff := cmp.Diff(map[string]delivery.Action{"plan-a": delivery.Create, "plan-b": delivery.Change}, got); diff != "" {
		t.Error(diff)
	}
	if err := hub.Client.Get(t.Context(), client.ObjectKeyFromObject(owned), owned); err != nil {
		t.Fatal(err)
	}
	if owned.Spec.DeleteOption == nil || owned.Spec.DeleteOption.PropagationPolicy != workv1.DeletePropagationPolicyTypeOrphan {
		t.Errorf("overwriting lost the delete option: %+v", owned.Spec.DeleteOption)
	}
	if invalid := (delivery.Delivery{Name: "empty"}).Validate(); invalid == nil {
		t.Error("a work without manifests is valid")
	}
}

// TestOrphanBeforeDeletion has an agent that acts on the change late.
func TestOrphanBeforeDeletion(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	addCluster(t, hub.Client, "orphan", "orphan", metav1.ConditionTrue)
	actions(t, hub, delivered("kept", "1"), delivery.Choice{Clusters: []string{"orphan"}})
	key := client.ObjectKey{Namespace: "orphan", Name: "kept"}
	reportApplied(t, hub.Client, key)
	work := &workv1.ManifestWork{}
	if err := hub.Client.Get(t.Context(), key, work); err != nil {
		t.Fatal(err)
	}
	if err := hub.Orphan(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan string, 10)
	done := make(chan error, 1)
	go func() {
		done <- hub.AwaitOrphaned(t.Context(), key.Name, []string{key.Namespace}, func(_, message string) { waiting <- message })
	}()
	select {
	case message := <-waiting:
		if message != "the agent has not applied the last change yet" {
			t.Errorf("waits for %q", message)
		}
	case err := <-done:
		t.Fatalf("the agent has not acted yet: %v", err)
	}
	reportApplied(t, hub.Client, key)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// reportApplied reports as an agent does that it applied the last change of a work.
func reportApplied(t *testing.T, c client.Client, key client.ObjectKey) {
	t.Helper()
	work := &workv1.ManifestWork{}
	if err := c.Get(t.Context(), key, work); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		apimeta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: work.Generation,
		})
	}
	if err := c.Status().Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	addCluster(t, hub.Client, "await", "await", metav1.ConditionTrue)
	actions(t, hub, delivered("awaited", "1"), delivery.Choice{Clusters: []string{"await"}})
	key := client.ObjectKey{Namespace: "await", Name: "awaited"}
	ctx, cancel := context.WithCancel(t.Context())
	err := hub.Await(ctx, key.Name, []string{key.Namespace}, report.Ready, func(string, string) { cancel() })
	if waited, ok := errors.AsType[*apply.WaitError](err); !ok || waited.Unmet[0].Message != "the agent has not reported yet" {
		t.Errorf("got %v", err)
	}
	reportApplied(t, hub.Client, key)
	if err := hub.Await(t.Context(), key.Name, []string{key.Namespace}, report.Ready, nil); err != nil {
		t.Error(err)
	}
}

// TestRelease deletes a work whose agent is gone.
func TestRelease(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	addCluster(t, hub.Client, "dead", "dead", "")
	actions(t, hub, delivered("stuck", "1"), delivery.Choice{Clusters: []string{"dead"}})
	key := client.ObjectKey{Namespace: "dead", Name: "stuck"}
	work := &workv1.ManifestWork{}
	if err := hub.Client.Get(t.Context(), key, work); err != nil {
		t.Fatal(err)
	}
	controllerutil.AddFinalizer(work, names.FinalizerManifestWork)
	if err := hub.Client.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	// A work that nobody deleted is not released.
	if err := hub.Release(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if err := hub.Client.Get(t.Context(), key, work); err != nil || !controllerutil.ContainsFinalizer(work, names.FinalizerManifestWork) {
		t.Errorf("finalizers %v, %v", work.Finalizers, err)
	}
	if err := hub.DeleteWithoutAgent(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	await.Success(t, patience, "the work is gone", func(ctx context.Context) error {
		return hub.AwaitGone(ctx, key.Name, []string{key.Namespace}, func(string, string) {})
	})
}

// TestCarryAfterAnotherWrite: what agents and other clients write between the plan and the
// change neither fails nor is lost.
func TestCarryAfterAnotherWrite(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	for _, name := range []string{"busy1", "busy2", "busy3"} {
		addCluster(t, hub.Client, name, "busy", metav1.ConditionTrue)
	}
	d := delivered("busy", "old")
	actions(t, hub, d, delivery.Choice{Clusters: []string{"busy1", "busy2"}})
	d = delivered("busy", "new")
	d.Overwrite = true
	steps, err := hub.Plan(t.Context(), d, delivery.Targets{Clusters: []string{"busy1", "busy3"}, Left: []string{"busy2"}})
	if err != nil {
		t.Fatal(err)
	}
	const finalizer = "example.com/agent"
	for _, name := range []string{"busy1", "busy2"} {
		live := &workv1.ManifestWork{}
		if err := hub.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "busy"}, live); err != nil {
			t.Fatal(err)
		}
		before := live.DeepCopy()
		live.Finalizers = append(live.Finalizers, finalizer)
		if err := hub.Client.Patch(t.Context(), live, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	actions(t, hub, delivered("busy", "new"), delivery.Choice{Clusters: []string{"busy3"}})

	want := map[string]delivery.Action{"busy1": delivery.Change, "busy2": delivery.Remove, "busy3": delivery.Unchanged}
	for _, step := range steps {
		action, err := hub.Carry(t.Context(), d, step)
		if cluster := step.Work.Namespace; err != nil || action != want[cluster] {
			t.Errorf("%s: %s, %v", cluster, action, err)
		}
	}
	live := &workv1.ManifestWork{}
	if err := hub.Client.Get(t.Context(), client.ObjectKey{Namespace: "busy1", Name: "busy"}, live); err != nil {
		t.Fatal(err)
	}
	if got := string(live.Spec.Workload.Manifests[0].Raw); !strings.Contains(got, "new") || !slices.Contains(live.Finalizers, finalizer) {
		t.Errorf("finalizers %v, %s", live.Finalizers, got)
	}
}
