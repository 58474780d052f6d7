package work_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/work"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/diagnosis"
)

// app returns a ManifestWork with the statuses of its conditions Applied and Available.
func app(applied, available metav1.ConditionStatus) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "app", Generation: 2, Finalizers: []string{names.FinalizerManifestWork}}}
	w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"settings"}}`)}}}
	condition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, ObservedGeneration: 2, Reason: "R", Message: message}
	}
	w.Status.Conditions = []metav1.Condition{condition(workv1.WorkApplied, applied, ""), condition(workv1.WorkAvailable, available, "")}
	w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		ResourceMeta: workv1.ManifestResourceMeta{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "settings"},
		Conditions:   []metav1.Condition{condition(workv1.ManifestApplied, applied, "no matches"), condition(workv1.ManifestAvailable, available, "is missing")},
	}}
	return w
}

// TestStages: the first stage that a ManifestWork did not reach fails, and later ones are skipped.
func TestStages(t *testing.T) {
	t.Parallel()
	inspect := "ocm get works app --clusters cluster1 -o tree"
	for name, tc := range map[string]struct {
		work  *workv1.ManifestWork
		check string
		want  finding.Outcome
	}{
		"known":                  {app(metav1.ConditionTrue, metav1.ConditionTrue), "the hub has the ManifestWork", finding.Good("1 manifest")},
		"reached":                {app(metav1.ConditionTrue, metav1.ConditionTrue), "the ManifestWork reached the agent", finding.Good("generation 2")},
		"not applied":            {app(metav1.ConditionFalse, metav1.ConditionFalse), "its manifests are applied", finding.Bad(inspect, "ConfigMap ns/settings: no matches")},
		"not applied, available": {app(metav1.ConditionFalse, metav1.ConditionFalse), "its resources are available", finding.Skip("needs: its manifests are applied")},
		"not available":          {app(metav1.ConditionTrue, metav1.ConditionFalse), "its resources are available", finding.Bad(inspect, "ConfigMap ns/settings: is missing")},
		"not available, ready":   {app(metav1.ConditionTrue, metav1.ConditionFalse), "its resources are ready", finding.Skip("needs: its resources are available")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := diagnosis.Outcome(t, work.Steps(diagnosis.Scope(t, tc.work), "cluster1", "app"), tc.check); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestMissing: a ManifestWorkReplicaSet of the same name explains a ManifestWork that is missing.
func TestMissing(t *testing.T) {
	t.Parallel()
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "sets", Name: "app"}}
	set.Status.Conditions = []metav1.Condition{{Type: "PlacementVerified", Status: metav1.ConditionFalse, Message: "no placement\nfound"}}
	for want, objs := range map[string][]client.Object{
		"there is no ManifestWork app in namespace cluster1":                                                       nil,
		"there is no ManifestWork app in namespace cluster1\nManifestWorkReplicaSet sets/app: no placement; found": {set},
	} {
		got := diagnosis.Outcome(t, work.Steps(diagnosis.Scope(t, objs...), "cluster1", "app"), "the hub has the ManifestWork")
		if got.Status != finding.Failed || got.Message != want || got.Try != "ocm get works --clusters cluster1" {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

// TestUnseen: without the agent's finalizer, the agent has not seen the ManifestWork.
func TestUnseen(t *testing.T) {
	t.Parallel()
	unseen := app("", "")
	unseen.Finalizers, unseen.Status = nil, workv1.ManifestWorkStatus{}
	got := diagnosis.Outcome(t, work.Steps(diagnosis.Scope(t, unseen), "cluster1", "app"), "the ManifestWork reached the agent")
	if got != finding.Bad("on the managed cluster: ocm check agent", "no work agent has seen it") {
		t.Errorf("%+v", got)
	}
}
