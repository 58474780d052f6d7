package status_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// at is a time, in minutes.
func at(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC))
}

// entry is what a pass found out about a manifest.
func entry(meta workv1.ManifestResourceMeta, conditions ...metav1.Condition) workv1.ManifestCondition {
	return workv1.ManifestCondition{ResourceMeta: meta, Conditions: conditions}
}

// observed is an entry for an object with this text, or for one that does not exist.
func observed(t *testing.T, meta workv1.ManifestResourceMeta, text string, generation int64, rules ...workv1.ConditionRule) workv1.ManifestCondition {
	t.Helper()
	seen := status.Observation{Meta: meta, Generation: generation, Options: manifest.Options{
		Conditions: rules,
		Feedback:   []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "phase", Path: ".status.phase"}}}},
	}}
	if text == "" {
		seen.Err = apierrors.NewNotFound(schema.GroupResource{}, meta.Name)
	} else {
		seen.Object = parse(t, text)
	}
	found := status.NewObserver(status.Limits{}, status.NewRules()).Observe(t.Context(), seen)
	found.Conditions = append(found.Conditions, status.Applied(nil, generation))
	return found
}

// condition returns a condition as a line, and its time.
func condition(conditions []metav1.Condition, kind string) (string, metav1.Time) {
	c := apimeta.FindStatusCondition(conditions, kind)
	if c == nil {
		return "", metav1.Time{}
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message, c.LastTransitionTime
}

func TestAppliedOfWork(t *testing.T) {
	t.Parallel()
	applied, failed := status.Applied(nil, 7), status.Applied(errors.New("no"), 7)
	const complete, incomplete = "True AppliedManifestWorkComplete: Apply manifest work complete", "False AppliedManifestWorkFailed: Failed to apply manifest work"
	for _, c := range []struct {
		name  string
		found []workv1.ManifestCondition
		want  string
	}{
		{"all are applied", []workv1.ManifestCondition{entry(configMap(0, "a"), applied), entry(configMap(1, "b"), applied)}, complete},
		{"one is not", []workv1.ManifestCondition{entry(configMap(0, "a"), applied), entry(configMap(1, "b"), failed)}, incomplete},
		{"nothing was tried", []workv1.ManifestCondition{entry(configMap(0, "a"), status.Available(configMap(0, "a"), nil))}, ""},
		{"the work is empty", nil, incomplete + ": manifests should not be empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got workv1.ManifestWorkStatus
			status.Update(&got, 7, c.found, at(1))
			line, _ := condition(got.Conditions, "Applied")
			if line != c.want {
				t.Errorf("got %q", line)
			}
			for _, c := range got.Conditions {
				if c.ObservedGeneration != 7 || c.LastTransitionTime != at(1) {
					t.Errorf("got %+v", c)
				}
			}
		})
	}
}

func TestAvailableOfWork(t *testing.T) {
	t.Parallel()
	meta := configMap(0, "a")
	yes, no := status.Available(meta, nil), status.Available(meta, apierrors.NewNotFound(schema.GroupResource{}, "a"))
	unknown := status.Available(meta, errors.New("timeout"))
	for _, c := range []struct {
		name  string
		found []metav1.Condition
		want  string
	}{
		{"all exist", []metav1.Condition{yes, yes}, "True ResourcesAvailable: All resources are available"},
		{"one does not", []metav1.Condition{yes, no, unknown}, "False ResourcesNotAvailable: 1 of 3 resources are not available"},
		{"one cannot be read", []metav1.Condition{yes, unknown, yes, unknown}, "Unknown ResourcesStatusUnknown: 2 of 4 resources have unknown status"},
		{"nothing was read", []metav1.Condition{status.Applied(nil, 7)}, "Unknown ResourcesStatusUnknown: cannot get any available resource "},
		{"the work is empty", nil, "Unknown ResourcesStatusUnknown: cannot get any available resource "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var found []workv1.ManifestCondition
			for i, condition := range c.found {
				found = append(found, entry(configMap(i, "a"), condition))
			}
			var got workv1.ManifestWorkStatus
			status.Update(&got, 7, found, at(1))
			if line, _ := condition(got.Conditions, "Available"); line != c.want {
				t.Errorf("got %q", line)
			}
		})
	}
}

func TestRulesOfWork(t *testing.T) {
	t.Parallel()
	of := func(status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Status: status, Reason: workv1.ConditionRuleEvaluated, Message: message, ObservedGeneration: 7}
	}
	yes, no, unknown := of("True", "yes"), of("False", "no"), of("Unknown", "unknown")
	const reason = " ConditionRulesAggregated: "
	for _, c := range []struct {
		name, kind string
		found      []metav1.Condition
		want       string
	}{
		{"one manifest: its message", "Complete", []metav1.Condition{yes}, "True" + reason + "yes"},
		{"one manifest without a message", "Complete", []metav1.Condition{of("True", "")}, "True" + reason + "Aggregated from 1 manifest conditions"},
		{"Complete if all are", "Complete", []metav1.Condition{yes, yes}, "True" + reason + "Aggregated from 2 manifest conditions"},
		{"not Complete if one is not", "Complete", []metav1.Condition{yes, no, unknown}, "False" + reason + "Aggregated from 3 manifest conditions"},
		{"Complete unknown if one is", "Complete", []metav1.Condition{yes, unknown}, "Unknown" + reason + "Aggregated from 2 manifest conditions"},
		{"others like Complete", "example.com/Ready", []metav1.Condition{yes, no}, "False" + reason + "Aggregated from 2 manifest conditions"},
		{"Progressing if one is", "Progressing", []metav1.Condition{no, yes, unknown}, "True" + reason + "Aggregated from 3 manifest conditions"},
		{"not Progressing if none is", "Progressing", []metav1.Condition{no, no}, "False" + reason + "Aggregated from 2 manifest conditions"},
		{"Progressing unknown if one is and none is", "Progressing", []metav1.Condition{no, unknown}, "Unknown" + reason + "Aggregated from 2 manifest conditions"},
		{"nothing without a rule", "Complete", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := []workv1.ManifestCondition{entry(configMap(9, "none"), status.Available(configMap(9, "none"), nil))}
			for i, condition := range c.found {
				condition.Type = c.kind
				found = append(found, entry(configMap(i, "a"), condition))
			}
			var got workv1.ManifestWorkStatus
			status.Update(&got, 7, found, at(1))
			if line, _ := condition(got.Conditions, c.kind); line != c.want {
				t.Errorf("got %q", line)
			}
		})
	}
}

func TestStatusIsInTheOrderOfTheSpec(t *testing.T) {
	t.Parallel()
	var got workv1.ManifestWorkStatus
	status.Update(&got, 1, []workv1.ManifestCondition{entry(configMap(0, "b"), status.Applied(nil, 1)), entry(configMap(1, "a"), status.Applied(nil, 1))}, at(1))
	for i, name := range []string{"b", "a"} {
		if meta := got.ResourceStatus.Manifests[i].ResourceMeta; meta.Name != name || int(meta.Ordinal) != i {
			t.Errorf("entry %d is %+v", i, meta)
		}
	}
}

func TestNothingChangesWhenNothingChanged(t *testing.T) {
	t.Parallel()
	const object = "{apiVersion: v1, kind: Pod, status: {phase: Running}}"
	pass := func(work *workv1.ManifestWorkStatus, minute int) {
		status.Update(work, 7, []workv1.ManifestCondition{
			observed(t, configMap(0, "a"), object, 7, celRule("Ready", "true"), celRule("Progressing", "object.none")),
			observed(t, configMap(1, "b"), "", 7),
		}, at(minute))
	}
	var work workv1.ManifestWorkStatus
	pass(&work, 1)
	before := work.DeepCopy()
	pass(&work, 2)
	if diff := cmp.Diff(before, &work); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestTransitionTimes(t *testing.T) {
	t.Parallel()
	var work workv1.ManifestWorkStatus
	const running, failed = "{apiVersion: v1, kind: Pod, status: {phase: Running}}", "{apiVersion: v1, kind: Pod, status: {phase: Failed}}"
	status.Update(&work, 7, []workv1.ManifestCondition{observed(t, configMap(0, "a"), running, 7)}, at(1))
	status.Update(&work, 7, []workv1.ManifestCondition{observed(t, configMap(0, "a"), failed, 7)}, at(2))
	for kind, want := range map[string]metav1.Time{"Applied": at(1), "Available": at(1), "StatusFeedbackSynced": at(2)} {
		if _, got := condition(work.ResourceStatus.Manifests[0].Conditions, kind); got != want {
			t.Errorf("%s with new feedback: %v", kind, got)
		}
	}
	status.Update(&work, 8, []workv1.ManifestCondition{observed(t, configMap(0, "a"), "", 8)}, at(3))
	for kind, want := range map[string]metav1.Time{"Applied": at(1), "Available": at(3), "StatusFeedbackSynced": at(2)} {
		if _, got := condition(work.ResourceStatus.Manifests[0].Conditions, kind); got != want {
			t.Errorf("%s of an object that is gone: %v", kind, got)
		}
	}
	if _, got := condition(work.Conditions, "Available"); got != at(3) {
		t.Errorf("Available of the work: %v", got)
	}
}

func TestFeedbackCondition(t *testing.T) {
	t.Parallel()
	paths := func(paths ...string) []workv1.FeedbackRule {
		rule := workv1.FeedbackRule{Type: workv1.JSONPathsType}
		for _, path := range paths {
			rule.JsonPaths = append(rule.JsonPaths, workv1.JsonPath{Name: path, Path: path})
		}
		return []workv1.FeedbackRule{rule}
	}
	for _, c := range []struct {
		name  string
		rules []workv1.FeedbackRule
		want  string
	}{
		{"values", paths(".status.phase"), "True StatusFeedbackSynced: "},
		{"no values", paths(".status.none"), "True StatusFeedbackSynced: "},
		{"no rules", nil, "True NoStatusFeedbackSynced: "},
		{
			"a failure", paths(".status.phase", ".kind["),
			"False StatusFeedbackSyncFailed: Sync status feedback failed with error .kind[: parse path .kind[: unterminated array",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := status.NewObserver(status.Limits{}, status.NewRules()).Observe(t.Context(), status.Observation{
				Meta: configMap(0, "a"), Object: parse(t, pod), Options: manifest.Options{Feedback: c.rules},
			})
			if line, _ := condition(found.Conditions, "StatusFeedbackSynced"); line != c.want {
				t.Errorf("got %q", line)
			}
			if wantValues := c.name == "values" || c.name == "a failure"; (len(found.StatusFeedbacks.Values) > 0) != wantValues {
				t.Errorf("got %+v", found.StatusFeedbacks)
			}
		})
	}
}

func TestObjectThatIsGone(t *testing.T) {
	t.Parallel()
	rule := celRule("Complete", `object.status.phase == "Succeeded"`)
	var work workv1.ManifestWorkStatus
	status.Update(&work, 7, []workv1.ManifestCondition{observed(t, configMap(0, "a"), "{apiVersion: v1, kind: Pod, status: {phase: Succeeded}}", 7, rule)}, at(1))
	status.Update(&work, 8, []workv1.ManifestCondition{observed(t, configMap(0, "a"), "", 8, rule)}, at(2))
	t.Run("keeps its feedback", func(t *testing.T) {
		t.Parallel()
		if got := show(t, work.ResourceStatus.Manifests[0].StatusFeedbacks.Values); got != "["+text("phase", "Succeeded")+"]" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("keeps the conditions of rules", func(t *testing.T) {
		t.Parallel()
		if line, _ := condition(work.Conditions, "Complete"); line != "True ConditionRulesAggregated: Manifest is Complete" {
			t.Errorf("got %q", line)
		}
	})
	t.Run("stays complete", func(t *testing.T) {
		t.Parallel()
		if !status.NewIndex(work.ResourceStatus.Manifests).Completed(configMap(0, "a")) {
			t.Error("the manifest is not complete")
		}
	})
	t.Run("is not available", func(t *testing.T) {
		t.Parallel()
		if line, _ := condition(work.Conditions, "Available"); line != "False ResourcesNotAvailable: 1 of 1 resources are not available" {
			t.Errorf("got %q", line)
		}
	})
}

func TestConditionsOfRemovedRulesGo(t *testing.T) {
	t.Parallel()
	const object = "{apiVersion: v1, kind: Pod, status: {phase: Running}}"
	var work workv1.ManifestWorkStatus
	status.Update(&work, 7, []workv1.ManifestCondition{observed(t, configMap(0, "a"), object, 7, celRule("Warm", "true"), celRule("Complete", "true"))}, at(1))
	work.Conditions = append(work.Conditions, metav1.Condition{Type: "Other", Reason: "Elsewhere", ObservedGeneration: 1})
	status.Update(&work, 8, []workv1.ManifestCondition{observed(t, configMap(0, "a"), object, 8, celRule("Complete", "true"))}, at(2))
	for kind, want := range map[string]bool{"Warm": false, "Complete": true, "Applied": true, "Available": true, "Other": true} {
		if got := apimeta.FindStatusCondition(work.Conditions, kind) != nil; got != want {
			t.Errorf("the work has %s: %v", kind, got)
		}
	}
	for kind, want := range map[string]bool{"Warm": false, "Complete": true, "Applied": true, "StatusFeedbackSynced": true} {
		if got := apimeta.FindStatusCondition(work.ResourceStatus.Manifests[0].Conditions, kind) != nil; got != want {
			t.Errorf("the manifest has %s: %v", kind, got)
		}
	}
}

func TestEntriesOfManifestsThatMoved(t *testing.T) {
	t.Parallel()
	widget := workv1.ManifestResourceMeta{Version: "v1", Kind: "Widget", Name: "w"}
	before := []workv1.ManifestCondition{
		entry(configMap(0, "a"), metav1.Condition{Type: "Mark", Message: "a"}),
		entry(configMap(1, "b"), metav1.Condition{Type: "Mark", Message: "b"}),
		entry(workv1.ManifestResourceMeta{Ordinal: 2}, metav1.Condition{Type: "Mark", Message: "undecodable"}),
		entry(configMap(3, "twice"), metav1.Condition{Type: "Mark", Message: "first"}),
		entry(configMap(4, "twice"), metav1.Condition{Type: "Mark", Message: "second"}),
		entry(configMap(5, "thrice"), metav1.Condition{}), entry(configMap(6, "thrice"), metav1.Condition{}), entry(configMap(7, "thrice"), metav1.Condition{}),
	}
	index := status.NewIndex(before)
	for _, c := range []struct {
		name string
		meta workv1.ManifestResourceMeta
		want string
	}{
		{"the same place", configMap(0, "a"), "a"},
		{"another place", configMap(0, "b"), "b"},
		{"one of two, by its place", configMap(4, "twice"), "second"},
		{"neither of two", configMap(9, "twice"), ""},
		{"none of three", configMap(9, "thrice"), ""},
		{"undecodable, by its place", workv1.ManifestResourceMeta{Ordinal: 2}, "undecodable"},
		{"undecodable at another place", workv1.ManifestResourceMeta{Ordinal: 0}, ""},
		{"new", widget, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found, ok := index.Find(c.meta)
			got := ""
			if mark := apimeta.FindStatusCondition(found.Conditions, "Mark"); mark != nil {
				got = mark.Message
			}
			if got != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
}

func TestUpdateReplacesSlices(t *testing.T) {
	t.Parallel()
	const object = "{apiVersion: v1, kind: Pod, status: {phase: Running}}"
	var cached workv1.ManifestWorkStatus
	status.Update(&cached, 7, []workv1.ManifestCondition{observed(t, configMap(0, "a"), object, 7, celRule("Ready", "true"))}, at(1))
	before, shallow := cached.DeepCopy(), cached
	status.Update(&shallow, 8, []workv1.ManifestCondition{observed(t, configMap(0, "a"), "", 8)}, at(2))
	status.Update(&shallow, 9, []workv1.ManifestCondition{observed(t, configMap(0, "a"), object, 9)}, at(3))
	if diff := cmp.Diff(before, &cached); diff != "" {
		t.Errorf("a shallow copy shares slices (-before +after):\n%s", diff)
	}
}

func TestManifestIsCompleteByItsCondition(t *testing.T) {
	t.Parallel()
	index := status.NewIndex([]workv1.ManifestCondition{
		entry(configMap(0, "done"), metav1.Condition{Type: "Complete", Status: "True"}),
		entry(configMap(1, "runs"), metav1.Condition{Type: "Complete", Status: "False"}),
		entry(configMap(2, "other"), metav1.Condition{Type: "Applied", Status: "True"}),
	})
	for name, want := range map[string]bool{"done": true, "runs": false, "other": false, "new": false} {
		if got := index.Completed(configMap(8, name)); got != want {
			t.Errorf("%s is complete: %v", name, got)
		}
	}
}
