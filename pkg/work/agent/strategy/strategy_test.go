package strategy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {a/b: x}}
spec:
  replicas: 3
  template: {spec: {containers: [{name: one, image: a}, {name: two, image: b}]}}`

// TestRemoveIgnored removes fields by each kind of path.
func TestRemoveIgnored(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		field workv1.IgnoreField
		want  string // What is left, in place of the first part.
		old   string
		err   bool
	}{
		"JSONPath":                  {field: workv1.IgnoreField{JSONPaths: []string{".spec.replicas"}}, old: "\n  replicas: 3"},
		"JSONPath in a list":        {field: workv1.IgnoreField{JSONPaths: []string{".spec.template.spec.containers[*].image"}}, old: ", image: a}, {name: two, image: b}", want: "}, {name: two}"},
		"JSONPath without a field":  {field: workv1.IgnoreField{JSONPaths: []string{"spec"}}, err: true},
		"JSONPath that is invalid":  {field: workv1.IgnoreField{JSONPaths: []string{".spec[.replicas"}}, err: true},
		"pointer":                   {field: workv1.IgnoreField{JSONPointers: []string{"/spec/replicas"}}, old: "\n  replicas: 3"},
		"pointer with escapes":      {field: workv1.IgnoreField{JSONPointers: []string{"/metadata/annotations/a~1b"}}, old: "{a/b: x}", want: "{}"},
		"pointer to an element":     {field: workv1.IgnoreField{JSONPointers: []string{"/spec/template/spec/containers/0"}}, old: "{name: one, image: a}, "},
		"pointer to nothing":        {field: workv1.IgnoreField{JSONPointers: []string{"/spec/paused", "/spec/template/spec/containers/7", "/data/x"}}},
		"pointer without a slash":   {field: workv1.IgnoreField{JSONPointers: []string{"spec"}}, err: true},
		"jq":                        {field: workv1.IgnoreField{JQPathExpressions: []string{".spec.replicas"}}, old: "\n  replicas: 3"},
		"jq with a selection":       {field: workv1.IgnoreField{JQPathExpressions: []string{`.spec.template.spec.containers[] | select(.name == "two") | .image`}}, old: ", image: b"},
		"jq that is invalid":        {field: workv1.IgnoreField{JQPathExpressions: []string{".spec["}}, err: true},
		"jq that is no path":        {field: workv1.IgnoreField{JQPathExpressions: []string{"1"}}, err: true},
		"jq that never ends":        {field: workv1.IgnoreField{JQPathExpressions: []string{"last(range(infinite)) as $x | .spec"}}, err: true},
		"jq that ends its place":    {field: workv1.IgnoreField{JQPathExpressions: []string{`.x) | .metadata.name = "y" | del(.x`}}, err: true},
		"jq that sets":              {field: workv1.IgnoreField{JQPathExpressions: []string{`.spec.replicas |= 7`}}, err: true},
		"jq with a function":        {field: workv1.IgnoreField{JQPathExpressions: []string{`.spec | getpath(["replicas"])`}}, err: true},
		"jq that matches":           {field: workv1.IgnoreField{JQPathExpressions: []string{`.spec | select(.x | test("(a*)*b"))`}}, err: true},
		"jq with a variable":        {field: workv1.IgnoreField{JQPathExpressions: []string{`. as $x | .spec`}}, err: true},
		"jq with a definition":      {field: workv1.IgnoreField{JQPathExpressions: []string{`def f: .spec; f`}}, err: true},
		"jq with text made up":      {field: workv1.IgnoreField{JQPathExpressions: []string{`.["\(.kind)"]`}}, err: true},
		"jq that multiplies":        {field: workv1.IgnoreField{JQPathExpressions: []string{`(.,.) | (.,.)`}}, err: true},
		"jq that selects twice":     {field: workv1.IgnoreField{JQPathExpressions: []string{`select(.spec.template.spec.containers[].name == "one")`}}, err: true},
		"jq of everything":          {field: workv1.IgnoreField{JQPathExpressions: []string{`..`}}, err: true},
		"jq with an element":        {field: workv1.IgnoreField{JQPathExpressions: []string{`.spec.template.spec.containers[0].image`}}, old: ", image: a"},
		"jq with two conditions":    {field: workv1.IgnoreField{JQPathExpressions: []string{`.spec.template.spec.containers[] | select(.name != "two" and .image == "a").image`}}, old: ", image: a"},
		"JSONPath that ends":        {field: workv1.IgnoreField{JSONPaths: []string{`.spec}{.metadata.name`}}, err: true},
		"JSONPath that multiplies":  {field: workv1.IgnoreField{JSONPaths: []string{`['spec','spec']['template','template'].metadata`}}, err: true},
		"JSONPath with recursions":  {field: workv1.IgnoreField{JSONPaths: []string{`..*..*.image`}}, err: true},
		"JSONPath with a filter":    {field: workv1.IgnoreField{JSONPaths: []string{`.spec.template.spec.containers[?(@.name=="two")].image`}}, old: ", image: b"},
		"name":                      {field: workv1.IgnoreField{JSONPaths: []string{`.metadata.name`}}, err: true},
		"kind":                      {field: workv1.IgnoreField{JQPathExpressions: []string{`.kind`}}, err: true},
		"everything about it":       {field: workv1.IgnoreField{JSONPointers: []string{`/metadata`}}, err: true},
		"long":                      {field: workv1.IgnoreField{JSONPointers: []string{"/" + strings.Repeat("a", 1024)}}, err: true},
		"ignored only when changed": {field: workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPointers: []string{"/spec"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := object(t, deployment)
			err := strategy.RemoveIgnored(t.Context(), o, []workv1.IgnoreField{tc.field})
			var ignore *status.IgnoreFieldsError
			if tc.err != errors.As(err, &ignore) {
				t.Fatalf("got %v", err)
			}
			want := object(t, strings.Replace(deployment, tc.old, tc.want, 1))
			if diff := cmp.Diff(want, o); err == nil && diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestSpecHash has the hash that OCM's work agent computes.
func TestSpecHash(t *testing.T) {
	t.Parallel()
	o := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: one}, data: {a: b}}")
	// md5sum of &{map[apiVersion:v1 data:map[a:b] kind:ConfigMap metadata:map[name:one namespace:default]]}
	if got := strategy.SpecHash(o); got != "6dcf80f4e54faa46d7177e7238875b30" {
		t.Errorf("got %s", got)
	}
}

// TestSaid leaves out what only an API server may say, and stores text as an API server does.
func TestSaid(t *testing.T) {
	t.Parallel()
	manifest := object(t, `
apiVersion: v1
kind: Secret
metadata: {name: one, resourceVersion: "1", creationTimestamp: null, ownerReferences: [], labels: {l: "1"}}
stringData: {a: x}`)
	want := object(t, `
apiVersion: v1
kind: Secret
metadata: {name: one, labels: {l: "1"}}
data: {a: eA==}`)
	if diff := cmp.Diff(want, strategy.Said(manifest)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

const managed = `
apiVersion: example.com/v1
kind: Thing
metadata:
  name: one
  managedFields:
  - {manager: work-agent, operation: Apply, fieldsV1: {"f:spec": {"f:mine": {}}}}
  - {manager: filler, operation: Update, fieldsV1: {"f:spec": {"f:rules": {}, "f:map": {"f:a": {}}, "f:hooks": {'k:{"name":"h"}': {"f:ca": {}}}}}}
  - {manager: scaler, operation: Update, subresource: scale, fieldsV1: {"f:spec": {"f:replicas": {}}}}
  - {manager: observer, operation: Update, subresource: status, fieldsV1: {"f:status": {"f:phase": {}}}}
spec: {mine: [x], rules: [y], map: {a: b}, hooks: [{name: other}, {name: h, ca: z}], replicas: 3}
status: {phase: Ready}`

// TestYield leaves to others what they have filled in, and nothing else.
func TestYield(t *testing.T) {
	t.Parallel()
	body := object(t, `
apiVersion: example.com/v1
kind: Thing
metadata: {name: one}
spec: {mine: [], rules: [], map: {}, hooks: [{name: h, ca: null, empty: {}}], replicas: 1}
status: {phase: New}`)
	want := object(t, `
apiVersion: example.com/v1
kind: Thing
metadata: {name: one}
spec: {mine: [], hooks: [{name: h, empty: {}}], replicas: 1}`)
	strategy.Yield(body, object(t, managed))
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestContests names the fields that others have given other values.
func TestContests(t *testing.T) {
	t.Parallel()
	body := object(t, `
apiVersion: example.com/v1
kind: Thing
metadata: {name: one}
spec: {mine: [z], rules: [y], hooks: [{name: h, ca: mine}], replicas: 1}`)
	want := []strategy.Contest{{Field: `.spec.hooks[name="h"].ca`, Manager: "filler"}, {Field: ".spec.replicas", Manager: "scaler"}}
	if diff := cmp.Diff(want, strategy.Contests(object(t, managed), body)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestCovers compares with what an API server has added to.
func TestCovers(t *testing.T) {
	t.Parallel()
	existing := object(t, deployment).Object
	for name, tc := range map[string]struct {
		desired any
		want    bool
	}{
		"less":           {map[string]any{"spec": map[string]any{"replicas": int64(3)}}, true},
		"another value":  {map[string]any{"spec": map[string]any{"replicas": int64(2)}}, false},
		"a shorter list": {map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "one"}}}}}}, false},
		"empty":          {map[string]any{"status": map[string]any{}, "list": []any{}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strategy.Covers(existing, tc.desired); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// FuzzRemoveIgnored has the paths of users of the hub.
func FuzzRemoveIgnored(f *testing.F) {
	for _, path := range []string{".spec.replicas", "/spec/replicas", "/metadata/annotations/a~1b", ".spec.template.spec.containers[*].image", "..", "/-1", "//"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		for _, field := range []workv1.IgnoreField{{JSONPaths: []string{path}}, {JSONPointers: []string{path}}, {JQPathExpressions: []string{path}}} {
			o := object(t, deployment)
			err := strategy.RemoveIgnored(t.Context(), o, []workv1.IgnoreField{field})
			if _, errJSON := o.MarshalJSON(); err == nil && o.GetKind() != "" && errJSON != nil {
				t.Errorf("%q leaves no object: %v", path, errJSON)
			}
		}
	})
}
