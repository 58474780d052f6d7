package manifests

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

//go:embed templates crds
var files embed.FS

// render returns the objects of one directory of templates, in the order of
// the file names.
func render(component string, values any, args []string) ([]*unstructured.Unstructured, error) {
	root := template.New(component).Option("missingkey=error").Funcs(template.FuncMap{
		"json": toJSON,
		"b64":  base64.StdEncoding.EncodeToString,
		"pull": pullSecretData,
		"pod":  newPodView,
		"cel":  celString,
		"user": names.ServiceAccountUser,
		"role": roleArgs,

		"tokenAuthorizer":  newTokenAuthorizerView,
		"imagePullBinding": bindingView,
	})
	root, err := root.ParseFS(files, "templates/shared/*.tpl", "templates/"+component+"/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("templates of %s: %w", component, err)
	}
	entries, err := fs.ReadDir(files, "templates/"+component)
	if err != nil {
		return nil, fmt.Errorf("templates of %s: %w", component, err)
	}
	var objs []*unstructured.Unstructured
	for _, entry := range entries {
		var out bytes.Buffer
		// A template sees the component's values, the arguments of its container and names.
		view := map[string]any{"Values": values, "Args": args, "Names": nameView()}
		if err := root.ExecuteTemplate(&out, entry.Name(), view); err != nil {
			return nil, fmt.Errorf("render %s/%s: %w", component, entry.Name(), err)
		}
		parsed, err := parse(out.Bytes())
		if err != nil {
			return nil, fmt.Errorf("render %s/%s: %w", component, entry.Name(), err)
		}
		objs = append(objs, parsed...)
	}
	return objs, nil
}

// parse splits a YAML stream. A document without content is left out.
func parse(stream []byte) ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	for document := range bytes.SplitSeq(stream, []byte("\n---\n")) {
		data, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(objs)+1, err)
		}
		if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
			continue
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("document %d: %w", len(objs)+1, err)
		}
		objs = append(objs, obj)
	}
	return objs, nil
}

// crds returns the CRDs of one directory, marked with the version that wrote them.
func crds(directory, version string) ([]*unstructured.Unstructured, error) {
	entries, err := fs.ReadDir(files, path.Join("crds", directory))
	if err != nil {
		return nil, fmt.Errorf("CRDs of %s: %w", directory, err)
	}
	var objs []*unstructured.Unstructured
	for _, entry := range entries {
		data, err := fs.ReadFile(files, path.Join("crds", directory, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("CRDs of %s: %w", directory, err)
		}
		parsed, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		for _, crd := range parsed {
			if version == "" {
				continue
			}
			if err := unstructured.SetNestedField(crd.Object, version, "metadata", "annotations", names.AnnotationVersion); err != nil {
				return nil, fmt.Errorf("%s: %w", entry.Name(), err)
			}
		}
		objs = append(objs, parsed...)
	}
	return objs, nil
}

// label puts labels onto objects, without replacing what a manifest sets itself.
func label(objs []*unstructured.Unstructured, labels map[string]string) []*unstructured.Unstructured {
	for _, obj := range objs {
		merged := map[string]string{}
		maps.Copy(merged, labels)
		maps.Copy(merged, obj.GetLabels())
		if len(merged) > 0 {
			obj.SetLabels(merged)
		}
	}
	return objs
}

// pullSecretData is the data of an image pull secret: without credentials, an empty
// configuration.
func pullSecretData(dockerConfig []byte) string {
	if dockerConfig == nil {
		dockerConfig = []byte("{}")
	}
	return base64.StdEncoding.EncodeToString(dockerConfig)
}

// toJSON is the only way of a value into a manifest. JSON is YAML. What a Go
// type encodes as an empty struct or null is left out.
func toJSON(value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(prune(tree)); err != nil {
		return "", err
	}
	return strings.TrimSpace(out.String()), nil
}

// celString quotes a string for a CEL expression. JSON's escapes are CEL's.
func celString(value string) (string, error) {
	data, err := json.Marshal(value)
	return string(data), err
}

// prune removes nulls and the objects that are empty without them, from inside
// an object; the value itself stays.
func prune(value any) any {
	m, ok := value.(map[string]any)
	if !ok {
		return value
	}
	for key, child := range m {
		child = prune(child)
		if empty, ok := child.(map[string]any); child == nil || (ok && len(empty) == 0) {
			delete(m, key)
			continue
		}
		m[key] = child
	}
	return m
}

// errNamespace says that a Klusterlet without a namespace cannot be rendered.
var errNamespace = errors.New("the namespace of the agents must be set")
