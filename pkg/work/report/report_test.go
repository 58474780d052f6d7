package report_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

// work is one of a ConfigMap and a Deployment, in its second generation.
func work(change func(*workv1.ManifestWork)) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "app", Generation: 2}}
	for _, raw := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"settings"},"data":{"password":"SECRET"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"ns","name":"web"}}`,
	} {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(raw)}})
	}
	if change != nil {
		change(w)
	}
	return w
}

func condition(kind string, status metav1.ConditionStatus, generation int64, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, Reason: "R", Message: message}
}

// reported is a change that sets the conditions of a work.
func reported(conditions ...metav1.Condition) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) { w.Status.Conditions = conditions }
}

// web adds what the agent reports about the Deployment.
func web(w *workv1.ManifestWork, conditions ...metav1.Condition) {
	w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		ResourceMeta: workv1.ManifestResourceMeta{Ordinal: 1, Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ns", Name: "web"},
		Conditions:   conditions,
	}}
}

func TestReason(t *testing.T) {
	t.Parallel()
	applied := condition(workv1.WorkApplied, metav1.ConditionTrue, 2, "")
	available := condition(workv1.WorkAvailable, metav1.ConditionTrue, 2, "")
	for _, tc := range []struct {
		name   string
		change func(*workv1.ManifestWork)
		want   string
	}{
		{name: "nothing reported", want: "the agent has not reported yet"},
		{
			name:   "an earlier generation is applied",
			change: reported(condition(workv1.WorkApplied, metav1.ConditionTrue, 1, ""), available),
			want:   "the agent has not applied the last change yet",
		},
		{
			name:   "an agent that records no generation is believed",
			change: reported(condition(workv1.WorkApplied, metav1.ConditionTrue, 0, ""), condition(workv1.WorkAvailable, metav1.ConditionTrue, 0, "")),
		},
		{name: "availability of the last change is not known", change: reported(applied, condition(workv1.WorkAvailable, metav1.ConditionTrue, 1, "")), want: "applied; the agent has not reported whether the last change is available"},
		{name: "availability was never reported", change: reported(applied), want: "applied; the agent has not reported whether it is available"},
		{name: "all is well", change: reported(applied, available)},
		{
			name: "a manifest failed", want: "Deployment ns/web: no matches",
			change: func(w *workv1.ManifestWork) {
				w.Status.Conditions = []metav1.Condition{condition(workv1.WorkApplied, metav1.ConditionFalse, 2, names.MessageWorkApplyFailed)}
				web(w, condition(workv1.ManifestApplied, metav1.ConditionFalse, 2, "no matches"))
			},
		},
		{
			name: "two manifests failed, one without a name", want: "manifest 0: cannot decode (and 1 more)",
			change: func(w *workv1.ManifestWork) {
				w.Spec.Workload.Manifests[0].Raw = []byte(`{}`)
				w.Status.Conditions = []metav1.Condition{condition(workv1.WorkApplied, metav1.ConditionFalse, 2, names.MessageWorkApplyFailed)}
				web(w, condition(workv1.ManifestApplied, metav1.ConditionFalse, 2, "no matches"))
				w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
					Conditions: []metav1.Condition{condition(workv1.ManifestApplied, metav1.ConditionFalse, 2, "cannot decode")},
				})
			},
		},
		{
			name: "the work failed and no manifest", want: "Failed to apply manifest work",
			change: reported(condition(workv1.WorkApplied, metav1.ConditionFalse, 2, names.MessageWorkApplyFailed)),
		},
		{
			name: "a resource is not available", want: "Deployment ns/web: Resource is not available",
			change: func(w *workv1.ManifestWork) {
				w.Status.Conditions = []metav1.Condition{applied, condition(workv1.WorkAvailable, metav1.ConditionFalse, 2, "1 of 2")}
				web(w, condition(workv1.ManifestAvailable, metav1.ConditionFalse, 2, names.MessageResourceNotAvailable))
			},
		},
		{
			name: "it is being deleted", want: "being deleted: waits for f",
			change: func(w *workv1.ManifestWork) {
				w.DeletionTimestamp, w.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"f"}
				w.Status.Conditions = []metav1.Condition{condition(workv1.WorkDeleting, metav1.ConditionTrue, 2, names.MessageWorkDeleting)}
			},
		},
		{
			name: "its deletion is held up", want: "being deleted: waiting for ConfigMap ns/one",
			change: func(w *workv1.ManifestWork) {
				w.DeletionTimestamp, w.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"f"}
				w.Status.Conditions = []metav1.Condition{condition(workv1.WorkDeleting, metav1.ConditionTrue, 2, names.MessageWorkDeleting+"; waiting for ConfigMap ns/one")}
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := report.Describe(work(tc.change))
			if got.Reason != tc.want || got.Reached(report.Ready) != (tc.want == "") {
				t.Errorf("got %q, ready %v; want %q", got.Reason, got.Reached(report.Ready), tc.want)
			}
		})
	}
}

// TestNotes has what the agent remarks about what is applied.
func TestNotes(t *testing.T) {
	t.Parallel()
	got := report.Describe(work(func(w *workv1.ManifestWork) {
		w.Status.Conditions = []metav1.Condition{condition(workv1.WorkApplied, metav1.ConditionTrue, 2, names.MessageWorkApplied+"; waiting for ConfigMap ns/left")}
		web(w, condition(workv1.ManifestApplied, metav1.ConditionTrue, 2, names.MessageManifestApplied+"; another writer"))
	}))
	if diff := cmp.Diff([]string{"waiting for ConfigMap ns/left", "Deployment ns/web: another writer"}, got.Notes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	got := report.Describe(work(func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
		w.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "ns", Name: "deployer"},
		}}
		w.OwnerReferences = []metav1.OwnerReference{{Kind: "ManagedClusterAddOn", Name: "a"}}
		w.Status.Conditions = []metav1.Condition{
			condition(workv1.WorkApplied, metav1.ConditionFalse, 2, ""), condition(workv1.WorkAvailable, metav1.ConditionTrue, 1, ""),
		}
		web(w, condition(workv1.ManifestApplied, metav1.ConditionFalse, 2, "Failed to apply manifest: not allowed to apply the resource apps deployments, ns web"))
		w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values = []workv1.FeedbackValue{
			{Name: "ReadyReplicas", Value: workv1.FieldValue{Type: workv1.Integer, Integer: new(int64(2))}},
			{Name: "Image", Value: workv1.FieldValue{Type: workv1.String, String: new("x")}},
			{Name: "Paused", Value: workv1.FieldValue{Type: workv1.Boolean, Boolean: new(false)}},
			{Name: "Raw", Value: workv1.FieldValue{Type: workv1.JsonRaw, JsonRaw: new(`{"a":1}`)}},
		}
		// About the manifest that had this place before.
		w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Ordinal: 0, Kind: "Secret", Name: "settings"},
			Conditions:   []metav1.Condition{condition(workv1.ManifestApplied, metav1.ConditionTrue, 1, "")},
		})
	}))
	want := report.Work{
		Cluster: "cluster1", Name: "app", Applied: "False", Available: "Unknown", Executor: "ns/deployer", Deletion: "Orphan",
		Owner:  "managedclusteraddon/a",
		Reason: "Deployment ns/web: not allowed to apply the resource apps deployments, ns web",
		Manifests: []report.Manifest{
			{Ordinal: 0, Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "settings"},
			{
				Ordinal: 1, Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ns", Name: "web", Applied: "False",
				Message:  "not allowed to apply the resource apps deployments, ns web",
				Feedback: []report.Value{{"ReadyReplicas", "2"}, {"Image", "x"}, {"Paused", "false"}, {"Raw", `{"a":1}`}},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if refused := got.Refused(); len(refused) != 1 || refused[0].Name != "web" {
		t.Errorf("refused: %v", refused)
	}
}
