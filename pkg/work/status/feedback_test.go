package status_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// parse returns the object that YAML or JSON describes.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return obj
}

// show is how the values look in the status of a work.
func show(t *testing.T, values []workv1.FeedbackValue) string {
	t.Helper()
	raw, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func integer(name string, value int) string {
	return fmt.Sprintf(`{"name":%q,"fieldValue":{"type":"Integer","integer":%d}}`, name, value)
}

func text(name, value string) string {
	return fmt.Sprintf(`{"name":%q,"fieldValue":{"type":"String","string":%q}}`, name, value)
}

// raw is a value named x.
func raw(value string) string {
	return fmt.Sprintf(`{"name":"x","fieldValue":{"type":"JsonRaw","jsonRaw":%q}}`, value)
}

func TestWellKnownStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, object string
		want         []string
	}{
		{
			"Deployment", "{apiVersion: apps/v1, kind: Deployment, status: {readyReplicas: 1, replicas: 3, availableReplicas: 2}}",
			[]string{integer("ReadyReplicas", 1), integer("Replicas", 3), integer("AvailableReplicas", 2)},
		},
		{
			"DaemonSet", "{apiVersion: apps/v1, kind: DaemonSet, status: {numberReady: 1, desiredNumberScheduled: 3, numberAvailable: 2}}",
			[]string{integer("NumberReady", 1), integer("DesiredNumberScheduled", 3), integer("NumberAvailable", 2)},
		},
		{
			"Job", "{apiVersion: batch/v1, kind: Job, status: {succeeded: 4, conditions: [{type: Other, status: 'False'}, {type: Complete, status: 'True'}]}}",
			[]string{text("JobComplete", "True"), integer("JobSucceeded", 4)},
		},
		{
			"Pod", "{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Initialized, status: 'True'}, {type: Ready, status: 'False'}]}}",
			[]string{text("PodReady", "False"), text("PodPhase", "Running")},
		},
		{"what the status lacks has no value", "{apiVersion: apps/v1, kind: Deployment, status: {replicas: 3}}", []string{integer("Replicas", 3)}},
		{"no status at all", "{apiVersion: v1, kind: Pod}", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			values, err := status.Values(parse(t, c.object), []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}, status.Limits{})
			want := "[" + strings.Join(c.want, ",") + "]"
			if c.want == nil {
				want = "null"
			}
			if got := show(t, values); err != nil || got != want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestWellKnownStatusOfOtherKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		"{apiVersion: apps/v1, kind: StatefulSet}", "{apiVersion: apps/v1beta1, kind: Deployment}", "{apiVersion: example.com/v1, kind: Job}",
	} {
		values, err := status.Values(parse(t, kind), []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}, status.Limits{})
		if err == nil || len(values) != 0 {
			t.Errorf("%s: %s, %v", kind, show(t, values), err)
		}
	}
}

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {z: "1", a: "2", m: "3"}}
spec: {hostNetwork: true, containers: [{name: b, image: one}, {name: a, image: two}]}
status:
  phase: Running
  startTime: null
  load: 1.5
  big: 9007199254740993
  conditions: [{type: Ready, status: "True"}, {type: Other, status: "True"}]
`

func TestJSONPaths(t *testing.T) {
	t.Parallel()
	on := status.Limits{Raw: true, MaxRawLength: 60}
	for _, c := range []struct {
		name, path string
		limits     status.Limits
		want       string
	}{
		{"a string", ".status.phase", status.Limits{}, text("x", "Running")},
		{"an integer", ".status.big", status.Limits{}, integer("x", 9007199254740993)},
		{"a boolean", ".spec.hostNetwork", status.Limits{}, `{"name":"x","fieldValue":{"type":"Boolean","boolean":true}}`},
		{"a filter", `.status.conditions[?(@.type=="Ready")].status`, status.Limits{}, text("x", "True")},
		{"an index", ".spec.containers[-1].name", status.Limits{}, text("x", "a")},
		{"the only result of ..", "..hostNetwork", status.Limits{}, `{"name":"x","fieldValue":{"type":"Boolean","boolean":true}}`},
		{"nothing for a missing field", ".status.reason.code", status.Limits{}, ""},
		{"nothing for null", ".status.startTime", status.Limits{}, ""},
		{"a fraction is JSON", ".status.load", on, raw("1.5")},
		{"an object is JSON", ".spec.containers[0]", on, raw(`{"image":"one","name":"b"}`)},
		{"a list is JSON", ".spec.containers[*].name", on, raw(`["b","a"]`)},
		{"several results are JSON, in the order of the object", `.status.conditions[?(@.status=="True")].type`, on, raw(`["Ready","Other"]`)},
		{"results whose order means nothing are sorted", ".metadata.labels.*", on, raw(`["1","2","3"]`)},
		{"a union", ".metadata.labels['z','a']", on, raw(`["1","2"]`)},
		{"exactly as long as allowed", ".spec.containers", status.Limits{Raw: true, MaxRawLength: 55}, raw(`[{"image":"one","name":"b"},{"image":"two","name":"a"}]`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rule := workv1.FeedbackRule{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "x", Path: c.path}}}
			values, err := status.Values(parse(t, pod), []workv1.FeedbackRule{rule}, c.limits)
			want := "[" + c.want + "]"
			if c.want == "" {
				want = "null"
			}
			if got := show(t, values); err != nil || got != want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestJSONPathsThatFail(t *testing.T) {
	t.Parallel()
	off, on := status.Limits{MaxRawLength: 1024}, status.Limits{Raw: true, MaxRawLength: 54}
	for _, c := range []struct {
		name, path string
		limits     status.Limits
		want       string
	}{
		{"an object without the gate", ".status", off, "x: the value is no integer, string or boolean; the feature gate RawFeedbackJsonString of the agent allows others"},
		{"a list without the gate", ".spec.containers", off, "RawFeedbackJsonString"},
		{"a fraction without the gate", ".status.load", off, "RawFeedbackJsonString"},
		{"several results without the gate", ".status.conditions[*].type", off, "RawFeedbackJsonString"},
		{"an object that is too long", ".spec.containers", on, "x: the value is too long as JSON; choose a path to a part of it"},
		{"results that are too long together", ".spec.containers[*]", on, "too long"},
		{"more than the API accepts", ".data.long", status.Limits{Raw: true, MaxRawLength: 5000}, "too long"},
		{"no path", ".status[", off, "x: parse path .status["},
		{"no path of this language", "status.phase", off, "unrecognized identifier status"},
		{"an index that the list lacks", ".spec.containers[7].name", off, "out of bounds"},
		{"two paths", ".status.phase}{.status.phase", off, "too complex"},
		{"loops", ".spec.containers[*]}{range @}{.name}{end", off, "too complex"},
		{"a path that visits values again and again", "..containers..name", on, "too complex"},
		{"a union of unions", ".spec['containers','containers'][0,0,0,0]", on, "too complex"},
		{"a filter that does", `.spec.containers[?(@..name=="a")]..name`, on, "too complex"},
		{"a path that is too long", strings.Repeat(".a", 513), off, "x: the path has 1026 bytes, more than 1024"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rule := workv1.FeedbackRule{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "x", Path: c.path}, {Name: "y", Path: ".kind"}}}
			object := parse(t, pod+"data: {long: ["+strings.Repeat("1234567,", 200)+"1]}")
			values, err := status.Values(object, []workv1.FeedbackRule{rule}, c.limits)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got the error %v", err)
			}
			// The other values are reported all the same.
			if got := show(t, values); got != "["+text("y", "Pod")+"]" {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestFeedbackRules(t *testing.T) {
	t.Parallel()
	path := func(name, version, path string) workv1.FeedbackRule {
		return workv1.FeedbackRule{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: name, Version: version, Path: path}}}
	}
	for _, c := range []struct {
		name  string
		rules []workv1.FeedbackRule
		want  string
		err   string
	}{
		{"values of all rules in their order", []workv1.FeedbackRule{path("b", "", ".kind"), path("a", "", ".kind")}, text("b", "Pod") + "," + text("a", "Pod"), ""},
		{"the version of the path", []workv1.FeedbackRule{path("a", "v1", ".kind")}, text("a", "Pod"), ""},
		{"another version of the path", []workv1.FeedbackRule{path("a", "v1beta1", ".kind"), path("b", "", ".kind")}, text("b", "Pod"), "a: the path is for version v1beta1, the resource is applied as v1"},
		{"a name once", []workv1.FeedbackRule{path("a", "", ".kind"), path("a", "", ".apiVersion")}, text("a", "Pod"), "a: another value has this name"},
		{"a name that has no value is free", []workv1.FeedbackRule{path("a", "", ".none"), path("a", "", ".kind")}, text("a", "Pod"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			values, err := status.Values(parse(t, pod), c.rules, status.Limits{})
			message := ""
			if err != nil {
				message = err.Error()
			}
			if got := show(t, values); got != "["+c.want+"]" || message != c.err {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestFeedbackDoesNotChangeObject(t *testing.T) {
	t.Parallel()
	object := parse(t, pod)
	before := object.DeepCopy()
	rule := workv1.FeedbackRule{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "x", Path: "..name"}}}
	if _, err := status.Values(object, []workv1.FeedbackRule{rule}, status.Limits{Raw: true, MaxRawLength: 1024}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// FuzzValues follows any path in any object.
func FuzzValues(f *testing.F) {
	for _, path := range []string{
		".status.phase", "..name", ".a[*].b", ".a[0:1:-1]", ".a[?(@.b==null)]", ".a['b','c']", "range .a", ".a[?(@.b)]", "[-9]", "5", "'a'", ".a.*.*", ".*[?(@>1)]",
	} {
		f.Add(path, `{"kind":"A","a":[null,{"b":1,"c":[1.5,true]},"x"],"status":{"phase":"x"}}`, true)
	}
	f.Fuzz(func(t *testing.T, path, object string, rawAllowed bool) {
		obj := &unstructured.Unstructured{}
		if obj.UnmarshalJSON([]byte(object)) != nil {
			return
		}
		before := obj.DeepCopy()
		rules := []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "x", Path: path}}}}
		limits := status.Limits{Raw: rawAllowed, MaxRawLength: 4096}
		values, err := status.Values(obj, rules, limits)
		again, _ := status.Values(obj, rules, limits)
		if diff := cmp.Diff(values, again); diff != "" {
			t.Errorf("%q has other values each time:\n%s", path, diff)
		}
		if diff := cmp.Diff(before, obj); diff != "" {
			t.Errorf("%q changed the object:\n%s", path, diff)
		}
		if err != nil && len(values) > 0 {
			t.Errorf("%q: %v and %v", path, values, err)
		}
		for _, v := range values {
			if v.Value.JsonRaw != nil && (!rawAllowed || len(*v.Value.JsonRaw) > 1024) {
				t.Errorf("%q: JSON %q", path, *v.Value.JsonRaw)
			}
		}
	})
}
