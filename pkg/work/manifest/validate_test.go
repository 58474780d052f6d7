package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
)

// filled returns a manifest whose JSON has so many bytes.
func filled(t *testing.T, name string, bytes int) string {
	t.Helper()
	format := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"ns"},"data":{"a":%q}}`
	text := fmt.Sprintf(format, name, "")
	return fmt.Sprintf(format, name, strings.Repeat("x", bytes-len(text)))
}

func TestValidate(t *testing.T) {
	t.Parallel()
	const at = "spec.workload.manifests"
	configMap := object(t, "v1", "ConfigMap", "ns", "a")
	for _, c := range []struct {
		name      string
		manifests []string
		want      []string
	}{
		{"a work", []string{configMap, object(t, "apps/v1", "Deployment", "ns", "a")}, nil},
		{"no manifests", nil, []string{at + ": Required value: manifests should not be empty"}},
		{"no kind", []string{`{"apiVersion":"v1","metadata":{"name":"a"}}`}, []string{at + "[0]: Invalid value: kind must be set in manifest"}},
		{"no name", []string{configMap, `{"apiVersion":"v1","kind":"Pod","metadata":{}}`}, []string{at + "[1]: Invalid value: name must be set in manifest"}},
		{
			"a generated name",
			[]string{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","generateName":"b-"}}`},
			[]string{at + "[0]: Invalid value: generateName must not be set in manifest"},
		},
		{
			"only a generated name",
			[]string{`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"b-"}}`},
			[]string{at + "[0]: Invalid value: name must be set in manifest"},
		},
		{
			"a duplicate",
			[]string{configMap, object(t, "v1", "Secret", "ns", "a"), configMap},
			[]string{at + "[2]: Invalid value: duplicate manifest for resource ns/a with resource type v1.ConfigMap"},
		},
		{
			"a duplicate of the cluster",
			[]string{object(t, "v1", "Namespace", "", "a"), object(t, "v1", "Namespace", "", "a")},
			[]string{at + "[1]: Invalid value: duplicate manifest for resource /a with resource type v1.Namespace"},
		},
		{"one name in two namespaces", []string{configMap, object(t, "v1", "ConfigMap", "other", "a")}, nil},
		{"one name in two groups", []string{configMap, object(t, "example.com/v1", "ConfigMap", "ns", "a")}, nil},
		{"no object", []string{`[]`}, []string{at + "[0]: Invalid value: json: cannot unmarshal array into Go value of type map[string]interface {}"}},
		{"several mistakes", []string{`{"kind":"A"}`, configMap, configMap}, []string{
			at + "[0]: Invalid value: name must be set in manifest",
			at + "[2]: Invalid value: duplicate manifest for resource ns/a with resource type v1.ConfigMap",
		}},
		// In protocol buffers each manifest has four bytes more.
		{"500 KiB", []string{filled(t, "a", 200*1024), filled(t, "b", 300*1024-8)}, nil},
		{"more than 500 KiB", []string{filled(t, "a", 200*1024), filled(t, "b", 300*1024-7)}, []string{
			at + ": Invalid value: the size of manifests is 512001 bytes which exceeds the 512000 limit",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, err := range manifest.Validate(workOf(c.manifests...)) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
