package status_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

func TestReady(t *testing.T) {
	t.Parallel()
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, generation: 2}\nspec: {replicas: 2}\n"
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once, deletionTimestamp: 2026-01-01T00:00:00Z}\n"
	const custom = "apiVersion: example.com/v1\nkind: Gear\nmetadata: {name: one, generation: 2}\n"
	for name, tc := range map[string]struct {
		object string
		status metav1.ConditionStatus
		// reason is empty for an object that does not say whether it is ready.
		reason string
	}{
		"nothing of the kind":        {object: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}"},
		"a role":                     {object: "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: one}"},
		"a new Deployment":           {object: deployment, status: "False", reason: names.ReasonResourceNotReady},
		"a change that is not seen":  {object: deployment + "status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}", status: "False", reason: names.ReasonResourceNotReady},
		"half of a Deployment":       {object: deployment + "status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1}", status: "False", reason: names.ReasonResourceNotReady},
		"a Deployment":               {object: deployment + "status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: 'True'}]}", status: "True", reason: names.ReasonResourceReady},
		"a Job that runs":            {object: job + "status: {startTime: 2026-01-01T00:00:00Z, active: 1}", status: "False", reason: names.ReasonResourceNotReady},
		"a Job that is complete":     {object: job + "status: {startTime: 2026-01-01T00:00:00Z, conditions: [{type: Complete, status: 'True'}]}", status: "True", reason: names.ReasonResourceFinished},
		"a Job that has failed":      {object: job + "status: {startTime: 2026-01-01T00:00:00Z, conditions: [{type: Failed, status: 'True'}]}", status: "False", reason: names.ReasonResourceFinished},
		"a Job that is to be failed": {object: job + "status: {startTime: 2026-01-01T00:00:00Z, conditions: [{type: Failed, status: 'False'}]}", status: "False", reason: names.ReasonResourceNotReady},
		"a Pod that is done":         {object: "apiVersion: v1\nkind: Pod\nspec: {restartPolicy: Never}\nstatus: {phase: Succeeded}", status: "True", reason: names.ReasonResourceFinished},
		"a Pod that has failed":      {object: "apiVersion: v1\nkind: Pod\nspec: {restartPolicy: Never}\nstatus: {phase: Failed}", status: "False", reason: names.ReasonResourceFinished},
		"a Pod that was evicted":     {object: "apiVersion: v1\nkind: Pod\nspec: {restartPolicy: Always}\nstatus: {phase: Failed}", status: "False", reason: names.ReasonResourceNotReady},
		"a claim without a volume":   {object: "apiVersion: v1\nkind: PersistentVolumeClaim\nstatus: {phase: Pending}", status: "False", reason: names.ReasonResourceNotReady},
		"a custom resource":          {object: custom + "status: {conditions: [{type: Toothed, status: 'False'}]}"},
		"one that is not ready":      {object: custom + "status: {conditions: [{type: Ready, status: 'False', reason: Teeth, message: too few}]}", status: "False", reason: names.ReasonResourceNotReady},
		"one that is ready":          {object: custom + "status: {conditions: [{type: Ready, status: 'True'}]}", status: "True", reason: names.ReasonResourceReady},
		"one that stalls":            {object: custom + "status: {conditions: [{type: Stalled, status: 'True', message: stuck}]}", status: "False", reason: names.ReasonResourceNotReady},
		"one whose change is unseen": {object: custom + "status: {observedGeneration: 1}", status: "False", reason: names.ReasonResourceNotReady},
		"a status that is none":      {object: custom + "status: {observedGeneration: yes, conditions: {}}", status: "Unknown", reason: names.ReasonResourceNotReady},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, says := status.Ready(parse(t, tc.object), 7)
			if says != (tc.reason != "") {
				t.Fatalf("says whether it is ready: %v, %+v", says, c)
			}
			if says && (c.Status != tc.status || c.Reason != tc.reason || c.ObservedGeneration != 7 || c.Type != names.ConditionReady) {
				t.Errorf("got %+v", c)
			}
		})
	}
}

// TestReadyOfAWork: everything has to be applied and available, and ready where it says so.
func TestReadyOfAWork(t *testing.T) {
	t.Parallel()
	of := func(kind string, state metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: state, Reason: "Test", Message: kind + " is " + string(state)}
	}
	there := []metav1.Condition{of(workv1.ManifestApplied, "True"), of(workv1.ManifestAvailable, "True")}
	for name, tc := range map[string]struct {
		manifests [][]metav1.Condition
		want      string
	}{
		"nothing":             {want: "False ResourcesNotReady: 0 of 0 resources are not ready"},
		"one that says it":    {manifests: [][]metav1.Condition{append(there[:2:2], of(names.ConditionReady, "True")), there}, want: "True ResourcesReady: All resources are ready"},
		"one that is not":     {manifests: [][]metav1.Condition{append(there[:2:2], of(names.ConditionReady, "False")), there}, want: "False ResourcesNotReady: 1 of 2 resources are not ready: Ready is False"},
		"one that is missing": {manifests: [][]metav1.Condition{{of(workv1.ManifestApplied, "True"), of(workv1.ManifestAvailable, "False")}}, want: "False ResourcesNotReady: 1 of 1 resources are not ready: Available is False"},
		"one that is unknown": {manifests: [][]metav1.Condition{{}, there}, want: "False ResourcesNotReady: 1 of 2 resources are not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var work workv1.ManifestWorkStatus
			var found []workv1.ManifestCondition
			for i, conditions := range tc.manifests {
				found = append(found, entry(configMap(i, "a"), conditions...))
			}
			status.Update(&work, 7, found, at(1))
			if line, _ := condition(work.Conditions, names.ConditionReady); line != tc.want {
				t.Errorf("got %q, want %q", line, tc.want)
			}
		})
	}
}

// FuzzReady: no object, whose status its controller chooses, stops the agent.
func FuzzReady(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"example.com/v1","kind":"Gear","metadata":{"generation":2},"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"False"}]}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":"two"},"status":{"conditions":{}}}`,
		`{"apiVersion":"batch/v1","kind":"Job","status":{"conditions":[{"type":"Complete","status":"True"}],"succeeded":1e300}}`,
		`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Pending","containerStatuses":[{"state":{"waiting":null}}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(data) != nil {
			return
		}
		before := object.DeepCopy()
		c, says := status.Ready(object, 1)
		if says && (c.Reason == "" || c.Status == "") {
			t.Errorf("%s: %+v", data, c)
		}
		if !equality.Semantic.DeepEqual(before, object) {
			t.Errorf("%s was changed", data)
		}
	})
}
