package manifest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
)

// workOf returns a work with these manifests.
func workOf(raw ...string) *workv1.ManifestWork {
	work := &workv1.ManifestWork{}
	for _, text := range raw {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
	}
	return work
}

// object returns the JSON of an object.
func object(t *testing.T, apiVersion, kind, namespace, name string) string {
	t.Helper()
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestDecode(t *testing.T) {
	t.Parallel()
	t.Run("manifests have the order and the ordinals of the spec", func(t *testing.T) {
		t.Parallel()
		decoded := manifest.Decode(workOf(object(t, "apps/v1", "Deployment", "ns", "b"), `{`, object(t, "v1", "Namespace", "", "a")))
		if len(decoded) != 3 || decoded[0].Object.GetName() != "b" || decoded[1].Object != nil || decoded[2].Object.GetName() != "a" {
			t.Fatalf("decoded %+v", decoded)
		}
		for i, m := range decoded {
			if m.Ordinal != i || (m.Err != nil) != (i == 1) {
				t.Errorf("manifest %d: %+v", i, m)
			}
		}
	})
	t.Run("a UID is ignored", func(t *testing.T) {
		t.Parallel()
		decoded := manifest.Decode(workOf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"1-2"}}`))
		if _, has, err := unstructured.NestedFieldNoCopy(decoded[0].Object.Object, "metadata", "uid"); has || err != nil || decoded[0].Err != nil {
			t.Errorf("decoded %+v", decoded[0])
		}
	})
	t.Run("numbers are whole where the manifest has whole ones", func(t *testing.T) {
		t.Parallel()
		decoded := manifest.Decode(workOf(`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"spec":{"n":9007199254740993}}`))
		if got, _, err := unstructured.NestedInt64(decoded[0].Object.Object, "spec", "n"); got != 9007199254740993 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("the work is not changed", func(t *testing.T) {
		t.Parallel()
		work := workOf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"1-2"}}`)
		before := work.DeepCopy()
		manifest.Decode(work)[0].Object.SetName("changed")
		if diff := cmp.Diff(before, work); diff != "" {
			t.Errorf("the work changed (-before +after):\n%s", diff)
		}
	})
	t.Run("an error quotes no part of a manifest", func(t *testing.T) {
		t.Parallel()
		for _, raw := range []string{
			`{"data":{"password":"hunter2"}}`, `{"data":{"password":"hunter2"}`, `"hunter2"`, `["hunter2"]`,
			`{"kind":7,"data":"hunter2"}`, `{"items":"hunter2"}`, `{"kind":"Secret","metadata":"hunter2"}`,
		} {
			if err := manifest.Decode(workOf(raw))[0].Err; err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", raw, err)
			}
		}
	})
}

func TestMeta(t *testing.T) {
	t.Parallel()
	mapping := func(resource string, scope apimeta.RESTScope) *apimeta.RESTMapping {
		return &apimeta.RESTMapping{Resource: schema.GroupVersionResource{Resource: resource}, Scope: scope}
	}
	for _, c := range []struct {
		name, raw string
		mapping   *apimeta.RESTMapping
		want      workv1.ManifestResourceMeta
	}{
		{
			"a namespaced resource", object(t, "apps/v1", "Deployment", "ns", "a"), mapping("deployments", apimeta.RESTScopeNamespace),
			workv1.ManifestResourceMeta{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "ns", Name: "a"},
		},
		{
			"the namespace of a resource of the cluster is ignored", object(t, "v1", "Namespace", "ns", "a"), mapping("namespaces", apimeta.RESTScopeRoot),
			workv1.ManifestResourceMeta{Version: "v1", Kind: "Namespace", Resource: "namespaces", Name: "a"},
		},
		{
			"a kind that is not served has no resource", object(t, "example.com/v1", "Widget", "ns", "a"), nil,
			workv1.ManifestResourceMeta{Group: "example.com", Version: "v1", Kind: "Widget", Namespace: "ns", Name: "a"},
		},
		{"what cannot be decoded has its place only", `{`, mapping("deployments", apimeta.RESTScopeNamespace), workv1.ManifestResourceMeta{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.want.Ordinal = 1
			decoded := manifest.Decode(workOf(object(t, "v1", "Pod", "ns", "other"), c.raw))
			if diff := cmp.Diff(c.want, decoded[1].Meta(c.mapping)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIdentifierLeavesOutVersionAndKind(t *testing.T) {
	t.Parallel()
	got := manifest.Identifier(workv1.ManifestResourceMeta{Ordinal: 4, Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "ns", Name: "a"})
	if want := (workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "ns", Name: "a"}); got != want {
		t.Errorf("got %+v", got)
	}
}

// FuzzDecode decodes what users of the hub may write.
func FuzzDecode(f *testing.F) {
	f.Add(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
	f.Add(`{"apiVersion":"v1","kind":"List","items":[{}]}`, `null`)
	f.Add(`{"kind":"A","metadata":{"name":1,"generateName":[]}}`, `{"apiVersion":{},"kind":"A","metadata":{"uid":3}}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		work := workOf(first, second)
		decoded := manifest.Decode(work)
		if len(decoded) != 2 {
			t.Fatalf("decoded %d manifests", len(decoded))
		}
		failed := 0
		for i, m := range decoded {
			if m.Err == nil && (m.Object == nil || m.Object.GetName() == "" || m.Object.GetUID() != "") {
				t.Errorf("manifest %d can be applied: %+v", i, m.Object)
			}
			if m.Err != nil {
				failed++
			}
			if meta := m.Meta(nil); int(meta.Ordinal) != i {
				t.Errorf("manifest %d: %+v", i, meta)
			}
		}
		if sorted := manifest.Sort(decoded); len(sorted) != 2 || sorted[0].Ordinal == sorted[1].Ordinal {
			t.Errorf("sorted %+v", sorted)
		}
		if errs := manifest.Validate(work); len(errs) < failed {
			t.Errorf("%d manifests cannot be applied, found %v", failed, errs)
		}
	})
}
