package status_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// evaluate returns the conditions that rules set on an object.
func evaluate(ctx context.Context, object *unstructured.Unstructured, rules ...workv1.ConditionRule) []metav1.Condition {
	observed := status.NewObserver(status.Limits{}, status.NewRules()).Observe(ctx, status.Observation{
		Meta: configMap(0, "a"), Object: object, Options: manifest.Options{Conditions: rules}, Generation: 7,
	})
	var set []metav1.Condition
	for _, condition := range observed.Conditions {
		if strings.HasPrefix(condition.Reason, "ConditionRule") {
			set = append(set, condition)
		}
	}
	return set
}

func celRule(condition string, expressions ...string) workv1.ConditionRule {
	return workv1.ConditionRule{Condition: condition, Type: workv1.CelConditionExpressionsType, CelExpressions: expressions}
}

func TestWellKnownConditions(t *testing.T) {
	t.Parallel()
	const job, finished = "{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Suspended, status: 'True'}, {type: TYPE, status: STATUS}]}}", "Job is finished"
	jobOf := func(kind, status string) string {
		return strings.NewReplacer("TYPE", kind, "STATUS", "'"+status+"'").Replace(job)
	}
	const pod = "{apiVersion: v1, kind: Pod, status: {phase: PHASE}}"
	podOf := func(phase string) string { return strings.ReplaceAll(pod, "PHASE", phase) }
	for _, c := range []struct {
		name, object string
		status       metav1.ConditionStatus
		message      string
	}{
		{"a Job that completed", jobOf("Complete", "True"), "True", finished},
		{"a Job that failed", jobOf("Failed", "True"), "True", finished},
		{"a Job that runs", jobOf("Complete", "False"), "False", "Job is not finished"},
		{"a Job that is suspended", jobOf("SuccessCriteriaMet", "True"), "False", "Job is not finished"},
		{"a Job without conditions", "{apiVersion: batch/v1, kind: Job, status: {active: 1}}", "False", "Job is not finished"},
		{"a Job with no condition in the list", "{apiVersion: batch/v1, kind: Job, status: {conditions: []}}", "False", "Job is not finished"},
		{"a Pod that succeeded", podOf("Succeeded"), "True", "Pod is in phase Succeeded"},
		{"a Pod that failed", podOf("Failed"), "True", "Pod is in phase Failed"},
		{"a Pod that runs", podOf("Running"), "False", "Pod is in phase Running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := []metav1.Condition{{
				Type: "Complete", Status: c.status, Reason: "ConditionRuleEvaluated", Message: c.message, ObservedGeneration: 7,
			}}
			rule := workv1.ConditionRule{Condition: "Complete", Type: workv1.WellKnownConditionsType}
			if diff := cmp.Diff(want, evaluate(t.Context(), parse(t, c.object), rule)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWellKnownConditionsOfOthersSetNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, object, condition string }{
		{"another kind", "{apiVersion: apps/v1, kind: Deployment}", "Complete"},
		{"another group", "{apiVersion: example.com/v1, kind: Job, status: {conditions: []}}", "Complete"},
		{"another condition", "{apiVersion: v1, kind: Pod, status: {phase: Failed}}", "Progressing"},
		{"no condition", "{apiVersion: v1, kind: Pod, status: {phase: Failed}}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rule := workv1.ConditionRule{Condition: c.condition, Type: workv1.WellKnownConditionsType}
			if got := evaluate(t.Context(), parse(t, c.object), rule); len(got) != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestWellKnownConditionWithMessageExpression(t *testing.T) {
	t.Parallel()
	rule := workv1.ConditionRule{
		Condition: "Complete", Type: workv1.WellKnownConditionsType, Message: "unused",
		MessageExpression: `object.metadata.name + (result ? " is done" : " runs")`,
	}
	got := evaluate(t.Context(), parse(t, "{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Failed}}"), rule)
	if len(got) != 1 || got[0].Message != "a is done" {
		t.Errorf("got %+v", got)
	}
}

func TestCELRules(t *testing.T) {
	t.Parallel()
	with := func(rule workv1.ConditionRule, message, expression string) workv1.ConditionRule {
		rule.Message, rule.MessageExpression = message, expression
		return rule
	}
	yes, no := celRule("Ready", `object.kind == "Pod"`), celRule("Ready", `object.kind == "Job"`)
	for _, c := range []struct {
		name string
		rule workv1.ConditionRule
		want metav1.Condition
	}{
		{"true", yes, metav1.Condition{Status: "True", Message: "Manifest is Ready"}},
		{"false", no, metav1.Condition{Status: "False", Message: "Manifest is not Ready"}},
		{"all are true", celRule("Ready", "true", "1 < 2"), metav1.Condition{Status: "True", Message: "Manifest is Ready"}},
		{"one of them is false", celRule("Ready", "true", "1 > 2", "true"), metav1.Condition{Status: "False", Message: "Manifest is not Ready"}},
		{"those after a false one are not evaluated", celRule("Ready", "false", "object.none"), metav1.Condition{Status: "False", Message: "Manifest is not Ready"}},
		{"none at all", celRule("Ready"), metav1.Condition{Status: "True", Message: "Manifest is Ready"}},
		{"a message", with(yes, "it is", ""), metav1.Condition{Status: "True", Message: "it is"}},
		{"a message for false", with(no, "it is", ""), metav1.Condition{Status: "False", Message: "it is"}},
		{"a message expression", with(yes, "it is", `"phase " + object.status.phase`), metav1.Condition{Status: "True", Message: "phase Running"}},
		{"a message expression with the result", with(no, "it is", `string(result)`), metav1.Condition{Status: "False", Message: "false"}},
		{"an empty message expression", with(yes, "it is", `""`), metav1.Condition{Status: "True", Message: "it is"}},
		{"an empty message expression and no message", with(yes, "", `""`), metav1.Condition{Status: "True", Message: "Manifest is Ready"}},
		{"a message expression that fails", with(yes, "it is", `object.none`), metav1.Condition{Status: "True", Message: "no such key: none"}},
		{"a message expression that does not compile", with(yes, "it is", `nothing`), metav1.Condition{Status: "True", Message: "ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')"}},
		{"a message expression of another type", with(yes, "it is", `1`), metav1.Condition{Status: "True", Message: "expected message expression to have a string result, got int"}},
		{
			"no such field", celRule("Ready", "object.none == 1"),
			metav1.Condition{Status: "False", Reason: "ConditionRuleExpressionError", Message: "no such key: none"},
		},
		{
			"no such name", celRule("Ready", "result"),
			metav1.Condition{Status: "False", Reason: "ConditionRuleExpressionError", Message: "ERROR: <input>:1:1: undeclared reference to 'result' (in container '')"},
		},
		{
			"no boolean", celRule("Ready", "object.kind"),
			metav1.Condition{Status: "False", Reason: "ConditionRuleExpressionError", Message: "expected bool result, got string"},
		},
		{
			"a type of rule that is not known",
			workv1.ConditionRule{Condition: "Ready", Type: "Rego"},
			metav1.Condition{Status: "Unknown", Reason: "ConditionRuleInvalid", Message: "unrecognized condition rule type Rego"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.want.Type, c.want.ObservedGeneration = "Ready", 7
			if c.want.Reason == "" {
				c.want.Reason = "ConditionRuleEvaluated"
			}
			if diff := cmp.Diff([]metav1.Condition{c.want}, evaluate(t.Context(), parse(t, pod), c.rule)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFunctionsOfExpressions has one function of each library that OCM's agent has.
func TestFunctionsOfExpressions(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{
		`hasConditions(object.status)`,
		`!hasConditions(object.metadata)`,
		`!hasConditions({"conditions": []})`,
		`!hasConditions({"conditions": "none"})`,
		`!hasConditions("status")`,
		`object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`,
		`object.?status.?none.orValue("x") == "x"`,
		`object.status.phase.lowerAscii() == "running"`,
		`[1, 2, 3].sum() == 6`,
		`"a1b".find("[0-9]") == "1"`,
		`isURL("https://example.com") && url("https://example.com:80/a").getPort() == "80"`,
		`quantity("1Gi").isGreaterThan(quantity("1M"))`,
		`ip("10.0.0.1").family() == 4`,
		`cidr("10.0.0.0/8").containsIP("10.1.2.3")`,
		`!format.dns1123Label().validate("a").hasValue()`,
		`semver("1.2.3").isLessThan(semver("1.10.0"))`,
		`object.status.big == 9007199254740993 && object.status.load == 1.5 && object.status.startTime == null`,
	} {
		got := evaluate(t.Context(), parse(t, pod), celRule("Ready", expression))
		if len(got) != 1 || got[0].Status != metav1.ConditionTrue {
			t.Errorf("%s: %+v", expression, got)
		}
	}
}

func TestRulesSetNoConditionOfTheAgent(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{"Applied", "StatusFeedbackSynced", "Deleting", "", "not a type", "example.com/", strings.Repeat("a", 400)} {
		if got := evaluate(t.Context(), parse(t, pod), celRule(condition, "true")); len(got) != 0 {
			t.Errorf("%s: %+v", condition, got)
		}
	}
	got := evaluate(t.Context(), parse(t, pod), celRule("example.com/Ready", "true"), celRule("Progressing", "true"), celRule("Degraded", "false"))
	if len(got) != 3 {
		t.Errorf("got %+v", got)
	}
}

func TestRuleForAvailableReplacesThatCondition(t *testing.T) {
	t.Parallel()
	observed := status.NewObserver(status.Limits{}, status.NewRules()).Observe(t.Context(), status.Observation{
		Meta: configMap(0, "a"), Object: parse(t, pod), Generation: 7,
		Options: manifest.Options{Conditions: []workv1.ConditionRule{celRule("Available", `object.status.phase == "Succeeded"`)}},
	})
	want := []metav1.Condition{
		{Type: "Available", Status: "False", Reason: "ConditionRuleEvaluated", Message: "Manifest is not Available", ObservedGeneration: 7},
		{Type: "StatusFeedbackSynced", Status: "True", Reason: "NoStatusFeedbackSynced"},
		{Type: "Ready", Status: "True", Reason: "ResourceReady", Message: "Pod is Ready", ObservedGeneration: 7},
	}
	if diff := cmp.Diff(want, observed.Conditions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRuleForReadyUntilItFinished: a rule says when a Job is ready while it runs. That it has
// finished is reported in any case, or it would run again when it is deleted.
func TestRuleForReadyUntilItFinished(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ status, want string }{
		"runs":     {"{active: 1}", "True ConditionRuleEvaluated"},
		"complete": {"{conditions: [{type: Complete, status: 'True'}]}", "True ResourceFinished"},
		"failed":   {"{conditions: [{type: Failed, status: 'True'}]}", "False ResourceFinished"},
	} {
		observed := status.NewObserver(status.Limits{}, status.NewRules()).Observe(t.Context(), status.Observation{
			Meta: configMap(0, "a"), Object: parse(t, "apiVersion: batch/v1\nkind: Job\nstatus: "+tc.status), Generation: 7,
			Options: manifest.Options{Conditions: []workv1.ConditionRule{celRule("Ready", "true")}},
		})
		ready := apimeta.FindStatusCondition(observed.Conditions, "Ready")
		if ready == nil || string(ready.Status)+" "+ready.Reason != tc.want {
			t.Errorf("a Job that %s: %+v", name, ready)
		}
	}
}

func TestExpressionsAreLimited(t *testing.T) {
	t.Parallel()
	object := parse(t, pod)
	// To look for the second text in the first costs 900,000; an expression may cost
	// 1,000,000. Loops cost as much, but take minutes with the race detector.
	large := &unstructured.Unstructured{Object: map[string]any{"kind": "A", "data": strings.Repeat("x", 1_000_000)}}
	costly := `object.data.contains("` + strings.Repeat("y", 90) + `")`
	t.Run("each", func(t *testing.T) {
		t.Parallel()
		for _, rule := range []workv1.ConditionRule{
			celRule("Ready", costly+" || "+costly),
			{Condition: "Ready", Type: workv1.CelConditionExpressionsType, MessageExpression: "string(" + costly + " || " + costly + ")"},
		} {
			got := evaluate(t.Context(), large, rule)
			if len(got) != 1 || !strings.Contains(got[0].Message, "cost limit exceeded") {
				t.Errorf("got %+v", got)
			}
		}
	})
	t.Run("all of one object", func(t *testing.T) {
		t.Parallel()
		var rules []workv1.ConditionRule
		for i := range 15 {
			rules = append(rules, celRule(fmt.Sprintf("Ready%d", i), "!"+costly))
		}
		got := evaluate(t.Context(), large, rules...)
		first, last := got[0], got[len(got)-1]
		if first.Status != metav1.ConditionTrue || last.Reason != "ConditionRuleExpressionError" || last.Message != "CEL evaluation budget exceeded" {
			t.Errorf("first %+v, last %+v", first, last)
		}
	})
	t.Run("by the context", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		long := "[" + strings.Repeat("1,", 999) + "1].all(x, true)"
		if got := evaluate(ctx, object, celRule("Ready", long)); got[0].Reason != "ConditionRuleExpressionError" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("in depth", func(t *testing.T) {
		t.Parallel()
		for _, expression := range []string{strings.Repeat("(", 10000), strings.Repeat("[", 5000) + strings.Repeat("]", 5000), strings.Repeat("a", 200000)} {
			if got := evaluate(t.Context(), object, celRule("Ready", expression)); got[0].Reason != "ConditionRuleExpressionError" {
				t.Errorf("got %+v", got)
			}
		}
	})
}

func TestOneObserverForManyWorkers(t *testing.T) {
	t.Parallel()
	observer := status.NewObserver(status.Limits{}, status.NewRules())
	rule := celRule("Ready", `object.status.phase == "Running"`)
	rule.MessageExpression = `object.status.phase`
	seen := status.Observation{Meta: configMap(0, "a"), Object: parse(t, pod), Options: manifest.Options{Conditions: []workv1.ConditionRule{rule}}}
	want := observer.Observe(t.Context(), seen)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 50 {
				if diff := cmp.Diff(want, observer.Observe(t.Context(), seen)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	workers.Wait()
}

// TestEqualTextIsEvaluatedWithItsVariables has one text as expression and as message
// expression: only the latter knows the result.
func TestEqualTextIsEvaluatedWithItsVariables(t *testing.T) {
	t.Parallel()
	observer := status.NewObserver(status.Limits{}, status.NewRules())
	observe := func(rule workv1.ConditionRule) metav1.Condition {
		options := manifest.Options{Conditions: []workv1.ConditionRule{rule}}
		observed := observer.Observe(t.Context(), status.Observation{Meta: configMap(0, "a"), Object: parse(t, pod), Options: options})
		return observed.Conditions[len(observed.Conditions)-1]
	}
	for range 2 { // The second time it is compiled already.
		message := celRule("Ready")
		message.MessageExpression = `result ? "yes" : "no"`
		if got := observe(message); got.Message != "yes" {
			t.Errorf("got %+v", got)
		}
		if got := observe(celRule("Ready", `result ? "yes" : "no"`)); got.Reason != "ConditionRuleExpressionError" {
			t.Errorf("got %+v", got)
		}
	}
}

// FuzzExpressions evaluates any expressions on any object.
func FuzzExpressions(f *testing.F) {
	f.Add(`object.status.phase == "Running"`, `object.kind + string(result)`, `{"kind":"A","status":{"phase":"Running"}}`)
	f.Add(`[object].all(x, x.a.b > 1)`, `object.a[0].b`, `{"kind":"A","a":[{"b":null}]}`)
	f.Add(`hasConditions(object)`, `"%s".format([object])`, `{"kind":"A","conditions":[1.5,{}]}`)
	f.Add(`object.map(k, object[k]) == []`, `dyn(1)`, `{"kind":"A","":{"":[]}}`)
	f.Fuzz(func(t *testing.T, expression, message, object string) {
		obj := &unstructured.Unstructured{}
		if obj.UnmarshalJSON([]byte(object)) != nil {
			return
		}
		before := obj.DeepCopy()
		rule := celRule("Ready", expression)
		rule.MessageExpression = message
		got := evaluate(t.Context(), obj, rule)
		if len(got) != 1 || got[0].Type != "Ready" || got[0].ObservedGeneration != 7 {
			t.Fatalf("got %+v", got)
		}
		if (got[0].Reason == "ConditionRuleExpressionError") && got[0].Status != metav1.ConditionFalse {
			t.Errorf("got %+v", got[0])
		}
		if diff := cmp.Diff(before, obj, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the object changed:\n%s", diff)
		}
	})
}
