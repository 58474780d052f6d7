package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

const oneMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: NS, labels: {color: blue}}
data: {key: value}`

// testApplies applies a namespace after what is in it, by the order of the spec.
func testApplies(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", `
apiVersion: v1
kind: ConfigMap
metadata: {name: inside, namespace: NS-inner}
data: {key: value}
---
apiVersion: v1
kind: Namespace
metadata: {name: NS-inner}`, func(w *workv1.ManifestWork) { w.Labels = map[string]string{"app": "x"} })
	p.reaches(t, work, "Applied=True", "Available=True")
	if !slices.Contains(work.Finalizers, names.FinalizerManifestWork) {
		t.Errorf("finalizers %v", work.Finalizers)
	}
	applied, err := p.appliedOf(t.Context(), work)
	if err != nil || applied == nil {
		t.Fatalf("no AppliedManifestWork: %v", err)
	}
	want := workv1.AppliedManifestWorkSpec{HubHash: names.HubHash(p.hubURL), AgentID: p.config.AgentID, ManifestWorkName: work.Name}
	if applied.Spec != want || applied.Labels["app"] != "x" || !slices.Contains(applied.Finalizers, names.FinalizerAppliedManifestWork) {
		t.Errorf("AppliedManifestWork %+v", applied)
	}
	inside := &corev1.ConfigMap{}
	if err := p.managed.Get(t.Context(), client.ObjectKey{Namespace: p.cluster + "-inner", Name: "inside"}, inside); err != nil {
		t.Fatal(err)
	}
	owner := metav1.OwnerReference{APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", Name: applied.Name, UID: applied.UID}
	if !slices.Equal(inside.OwnerReferences, []metav1.OwnerReference{owner}) {
		t.Errorf("owners %+v", inside.OwnerReferences)
	}
	if r := applied.Status.AppliedResources; len(r) != 2 || r[0].Resource != "configmaps" || r[0].UID != string(inside.UID) || r[1].Resource != "namespaces" {
		t.Errorf("applied resources %+v", r)
	}
	for i, meta := range []string{"ConfigMap", "Namespace"} {
		entry := work.Status.ResourceStatus.Manifests[i]
		applied := apimeta.FindStatusCondition(entry.Conditions, workv1.ManifestApplied)
		if entry.ResourceMeta.Kind != meta || int(entry.ResourceMeta.Ordinal) != i || applied == nil || applied.Message != "Apply manifest complete" {
			t.Errorf("manifest %d: %+v", i, entry)
		}
	}
}

// testUpdate has other writers change what was applied.
func testUpdate(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", oneMap)
	p.reaches(t, work, "Applied=True", "Available=True")
	p.edit(t, "one", `{"data":{"key":"other","more":"data"},"metadata":{"annotations":{"theirs":"stays"}}}`)
	repaired := func(c *corev1.ConfigMap) bool {
		return c != nil && len(c.Data) == 2 && c.Data["key"] == "value" && c.Annotations["theirs"] == "stays"
	}
	p.finds(t, "one", repaired)
	if err := p.managed.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "one"}}); err != nil {
		t.Fatal(err)
	}
	p.finds(t, "one", exists)
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: NS, labels: {size: large}}
data: {changed: value}`)
	})
	p.finds(t, "one", func(c *corev1.ConfigMap) bool {
		return c.Data["changed"] == "value" && len(c.Data) == 1 && c.Labels["size"] == "large"
	})
	p.reaches(t, work, "Applied=True", "Available=True")
}

// edit changes a ConfigMap as another writer.
func (p *place) edit(t *testing.T, name, patch string) {
	t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: name}}
	if err := p.managed.Patch(t.Context(), c, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
}

// strategy sets the update strategy of every ConfigMap.
func strategy(s workv1.UpdateStrategy) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Name: "*", Namespace: "*"}, UpdateStrategy: &s,
		}}
	}
}

func testCreateOnly(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", oneMap, strategy(workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}))
	p.reaches(t, work, "Applied=True", "Available=True")
	p.edit(t, "one", `{"data":{"key":"other"},"metadata":{"ownerReferences":null}}`)
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return len(c.OwnerReferences) == 1 })
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, oneMap+"\nimmutable: false")
	})
	p.reaches(t, work, "Applied=True", "Available=True")
	if c, err := p.configMap(t.Context(), "one"); err != nil || c.Data["key"] != "other" {
		t.Errorf("%v, %v", c, err)
	}
}

// testServerSideApply has another manager own a field.
func testServerSideApply(t *testing.T, p *place) {
	t.Helper()
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "one"}, Data: map[string]string{"key": "other", "more": "data"}}
	if err := p.managed.Create(t.Context(), theirs, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	set := func(config workv1.ServerSideApplyConfig) func(*workv1.ManifestWork) {
		return strategy(workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &config})
	}
	work := p.create(t, "app", oneMap, set(workv1.ServerSideApplyConfig{}))
	p.reaches(t, work, "Applied=False", "Available=True")
	p.change(t, work, set(workv1.ServerSideApplyConfig{Force: true, FieldManager: "work-agent-mine"}))
	p.reaches(t, work, "Applied=True", "Available=True")
	c, err := p.configMap(t.Context(), "one")
	if err != nil || c.Data["key"] != "value" || c.Data["more"] != "data" || len(c.OwnerReferences) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if !slices.ContainsFunc(c.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == "work-agent-mine" }) {
		t.Errorf("managers %+v", c.ManagedFields)
	}
}

// testIgnoreFields has others change fields that are ignored.
func testIgnoreFields(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	const both = `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: NS}
data: {present: mine, changed: mine, key: KEY}`
	work := p.create(t, "app", both, strategy(workv1.UpdateStrategy{
		Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{Force: true, IgnoreFields: []workv1.IgnoreField{
			{Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPointers: []string{"/data/present"}},
			{Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JQPathExpressions: []string{".data.changed"}},
		}},
	}))
	p.reaches(t, work, "Applied=True", "Available=True")
	p.finds(t, "one", func(c *corev1.ConfigMap) bool {
		return c.Data["present"] == "mine" && c.Data["changed"] == "mine" && c.Annotations[workv1.ManifestConfigSpecHashAnnotationKey] != ""
	})
	p.edit(t, "one", `{"data":{"present":"theirs","changed":"theirs"}}`)
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}
	})
	p.reaches(t, work, "Applied=True", "Available=True")
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c.Data["present"] == "theirs" && c.Data["changed"] == "theirs" })
	p.change(t, work, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = p.manifests(t, both+"\nimmutable: false")
	})
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c.Data["present"] == "theirs" && c.Data["changed"] == "mine" })
}

func testReadOnly(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", oneMap, strategy(workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}))
	p.reaches(t, work, "Applied=True", "Available=False")
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "one"}, Data: map[string]string{"key": "other"}}
	if err := p.managed.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	p.reaches(t, work, "Applied=True", "Available=True")
	if err := p.hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	p.gone(t, work)
	if c, err := p.configMap(t.Context(), "one"); err != nil || c == nil || c.Data["key"] != "other" || len(c.OwnerReferences) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// gone waits until a work and its AppliedManifestWork are gone.
func (p *place) gone(t *testing.T, work *workv1.ManifestWork) {
	t.Helper()
	await.Success(t, patience, work.Name+" is gone", func(ctx context.Context) error {
		err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), &workv1.ManifestWork{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return errors.Join(err, errors.New("the work exists"))
		}
		applied, err := p.appliedOf(ctx, work)
		if err == nil && applied != nil {
			err = errors.New("the AppliedManifestWork exists")
		}
		return err
	})
}

// testUnknownKind serves the kind after the work was created.
func testUnknownKind(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", `
apiVersion: test.example.com/v1
kind: Late
metadata: {name: one, namespace: NS}
---
`+oneMap)
	c := p.manifestReaches(t, work, 0, workv1.ManifestApplied, workv1.AppliedManifestFailed)
	if c.Message != `Failed to apply manifest: the server doesn't have a resource type "Late"` {
		t.Error(c.Message)
	}
	p.manifestReaches(t, work, 1, workv1.ManifestApplied, workv1.AppliedManifestComplete)
	p.manifestReaches(t, work, 0, workv1.ManifestAvailable, "IncompleteResourceMeta")
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "lates.test.example.com"},
		"spec": map[string]any{
			"group": "test.example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Late", "plural": "lates"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	if err := p.managed.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	p.reaches(t, work, "Applied=True", "Available=True")
}

// testWrongManifests has manifests that no cluster accepts next to a good one.
func testWrongManifests(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	work := p.create(t, "app", oneMap+`
---
apiVersion: v1
kind: ConfigMap
metadata: {generateName: one-, namespace: NS}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nowhere, namespace: NS-nowhere}
---
apiVersion: v1
kind: Service
metadata: {name: bad, namespace: NS}
spec: {ports: [{port: 100000}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: NS-twice, namespace: first}
---
apiVersion: v1
kind: Namespace
metadata: {name: NS-twice, namespace: second}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: twice, namespace: NS}
spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: twice, namespace: NS}
spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}`)
	for _, ordinal := range []int{0, 4, 6} {
		p.manifestReaches(t, work, ordinal, workv1.ManifestApplied, workv1.AppliedManifestComplete)
	}
	for _, ordinal := range []int{5, 7} {
		if c := p.manifestReaches(t, work, ordinal, workv1.ManifestApplied, workv1.AppliedManifestFailed); !strings.Contains(c.Message, "duplicate manifest for resource") {
			t.Error(c.Message)
		}
	}
	for _, ordinal := range []int{1, 2, 3} {
		p.manifestReaches(t, work, ordinal, workv1.ManifestApplied, workv1.AppliedManifestFailed)
	}
	p.manifestReaches(t, work, 2, workv1.ManifestAvailable, names.ReasonResourceNotAvailable)
	p.reaches(t, work, "Applied=False", "Available=False")
}
