package replicaset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	sdkv1alpha1 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
)

// TestProgress: how far a work is follows from its conditions about its last change.
func TestProgress(t *testing.T) {
	t.Parallel()
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}}
	now := metav1.NewTime(time.Unix(1, 0))
	is := func(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, LastTransitionTime: now}
	}
	yes, no, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	applied, available := is(workv1.WorkApplied, yes, 2), is(workv1.WorkAvailable, yes, 2)
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       sdkv1alpha1.RolloutStatus
		timed      bool
	}{
		"without conditions":         {nil, sdkv1alpha1.Progressing, false},
		"applied before the change":  {[]metav1.Condition{is(workv1.WorkApplied, yes, 1), available}, sdkv1alpha1.Progressing, false},
		"not applied":                {[]metav1.Condition{is(workv1.WorkApplied, no, 2), available}, sdkv1alpha1.Progressing, false},
		"applied":                    {[]metav1.Condition{applied}, sdkv1alpha1.Progressing, false},
		"available":                  {[]metav1.Condition{applied, available}, sdkv1alpha1.Succeeded, true},
		"not available":              {[]metav1.Condition{applied, is(workv1.WorkAvailable, no, 2)}, sdkv1alpha1.Progressing, true},
		"available and degraded":     {[]metav1.Condition{applied, available, is(workv1.WorkDegraded, yes, 2)}, sdkv1alpha1.Failed, true},
		"degraded before the change": {[]metav1.Condition{applied, available, is(workv1.WorkDegraded, yes, 1)}, sdkv1alpha1.Progressing, false},
		"progressing":                {[]metav1.Condition{applied, available, is(workv1.WorkProgressing, yes, 2)}, sdkv1alpha1.Progressing, true},
		"progressing, not known":     {[]metav1.Condition{applied, available, is(workv1.WorkProgressing, unknown, 2)}, sdkv1alpha1.Progressing, true},
		"progressing and degraded":   {[]metav1.Condition{applied, is(workv1.WorkProgressing, yes, 2), is(workv1.WorkDegraded, yes, 2)}, sdkv1alpha1.Failed, true},
		"progressed":                 {[]metav1.Condition{applied, is(workv1.WorkProgressing, no, 2)}, sdkv1alpha1.Succeeded, true},
		"progressed but degraded":    {[]metav1.Condition{applied, is(workv1.WorkProgressing, no, 2), is(workv1.WorkDegraded, yes, 2)}, sdkv1alpha1.Succeeded, true},
		"progressed before":          {[]metav1.Condition{applied, available, is(workv1.WorkProgressing, yes, 1)}, sdkv1alpha1.Succeeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "app", Generation: 2, Labels: labels(set, "p")}}
			work.Status.Conditions = test.conditions
			got := progress(set, "p", "c1", work)
			if got.ClusterName != "c1" || got.Status != test.want || (got.LastTransitionTime != nil) != test.timed {
				t.Errorf("got %+v", got)
			}
			work.Spec.DeleteOption = &workv1.DeleteOption{}
			if got := progress(set, "p", "c1", work); got.Status != sdkv1alpha1.ToApply {
				t.Errorf("with another spec: %+v", got)
			}
			work.DeletionTimestamp = &now
			if got := progress(set, "p", "c1", work); got.Status != sdkv1alpha1.Progressing {
				t.Errorf("being deleted: %+v", got)
			}
		})
	}
	if got := progress(set, "p", "c1", nil); got.Status != sdkv1alpha1.ToApply {
		t.Errorf("without a work: %+v", got)
	}
}
