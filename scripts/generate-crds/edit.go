package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// edit applies the table to one CRD. A path that does not exist is an error, so
// that the table follows the API module.
func (e *edits) edit(name string, crd map[string]any) error {
	spec, ok := crd["spec"].(map[string]any)
	if !ok {
		return errors.New("it has no spec")
	}
	// Generated, and empty until the CRD is applied.
	delete(crd, "status")
	crd["metadata"] = map[string]any{"name": name}
	storeNewest(versionsOf(crd))
	if err := e.addVersions(name, spec, versionsOf(crd)); err != nil {
		return err
	}
	versions := versionsOf(crd)
	if len(versions) > 1 {
		spec["conversion"] = e.conversion(name)
	}
	for _, version := range versions {
		if err := e.editVersion(name, version); err != nil {
			return err
		}
	}
	return nil
}

func (e *edits) editVersion(name string, version map[string]any) error {
	schema, err := schemaOf(version)
	if err != nil {
		return err
	}
	undescribe(schema)
	if err := e.removeDefaults(name, schema); err != nil {
		return err
	}
	if err := e.replacePatterns(name, schema); err != nil {
		return err
	}
	// What differs between the versions stands in an entry of its own.
	for _, entry := range []string{name, fmt.Sprintf("%s/%v", name, version["name"])} {
		if err := e.describe(entry, schema); err != nil {
			return err
		}
		if columns := e.Columns[entry]; columns != nil {
			version["additionalPrinterColumns"] = withColumns(version["additionalPrinterColumns"], columns)
		}
	}
	return nil
}

// storeNewest makes the newest version the stored one: our own components speak
// it, so that their traffic needs no conversion and a stopped conversion webhook
// hurts only old clients.
func storeNewest(versions []map[string]any) {
	for i, version := range versions {
		version["storage"] = i == len(versions)-1
	}
}

// addVersions adds versions that the Go types of the module do not have yet.
// They are not stored: the CRD of an installation without them could then not
// be applied over ours, because a stored version cannot be removed.
func (e *edits) addVersions(name string, spec map[string]any, published []map[string]any) error {
	for _, added := range e.AddVersions[name] {
		version := runtime.DeepCopyJSON(published[len(published)-1])
		if slices.ContainsFunc(published, func(v map[string]any) bool { return v["name"] == added }) {
			return fmt.Errorf("the API module publishes %s itself: remove it from addVersions", added)
		}
		version["name"], version["storage"] = added, false
		list, _ := spec["versions"].([]any)
		spec["versions"] = append(list, version)
	}
	return nil
}

// withColumns adds printer columns to the published ones, which keep their
// order: scripts count them. An age, which users look for at the end, stays last.
func withColumns(published any, added []any) []any {
	columns, _ := published.([]any)
	end := len(columns)
	if end > 0 {
		if last, ok := columns[end-1].(map[string]any); ok && last["jsonPath"] == ".metadata.creationTimestamp" {
			end--
		}
	}
	return slices.Insert(slices.Clone(columns), end, added...)
}

// undescribe removes the descriptions of the API module from a schema, because
// they are long and not ours. A field may be called description.
func undescribe(schema map[string]any) {
	delete(schema, "description")
	for key, value := range schema {
		switch child := value.(type) {
		case map[string]any:
			switch key {
			case "properties":
				for _, field := range child {
					undescribeAny(field)
				}
			case "items", "additionalProperties":
				undescribe(child)
			}
		case []any: // allOf, anyOf, oneOf
			for _, entry := range child {
				undescribeAny(entry)
			}
		}
	}
}

func undescribeAny(schema any) {
	if schema, ok := schema.(map[string]any); ok {
		undescribe(schema)
	}
}

// conversion says who converts between the versions of a CRD: the API server,
// which only changes apiVersion and drops what the other version lacks, or our
// webhook. Its namespace and CA are the installation's.
func (e *edits) conversion(name string) map[string]any {
	if !slices.Contains(e.Converted, name) {
		return map[string]any{"strategy": "None"}
	}
	return map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []string{"v1", "v1beta1"},
		"clientConfig": map[string]any{"service": map[string]any{
			"namespace": names.HubNamespace, "name": names.AddOnWebhookService, "port": names.AddOnWebhookPort, "path": "/convert",
		}},
	}}
}

// replacePatterns replaces patterns that exclude what we support, such as AWS
// partitions other than aws.
func (e *edits) replacePatterns(name string, schema map[string]any) error {
	for path, pattern := range e.Patterns[name] {
		field, err := lookup(schema, path)
		if err != nil {
			return err
		}
		if field["pattern"] == nil {
			return fmt.Errorf("%s has no pattern any more", path)
		}
		field["pattern"] = pattern
	}
	return nil
}

// removeDefaults takes away defaults that would be wrong for us: the images of
// another project, where no value means the operator's own image, and client
// rate limits, where no value leaves the limit to the API server.
func (e *edits) removeDefaults(name string, schema map[string]any) error {
	for _, path := range e.RemoveDefaults[name] {
		field, err := lookup(schema, path)
		if err != nil {
			return err
		}
		if _, ok := field["default"]; !ok {
			return fmt.Errorf("%s has no default to remove", path)
		}
		delete(field, "default")
	}
	return nil
}

// describe fills in what kubectl explain shows.
func (e *edits) describe(name string, schema map[string]any) error {
	descriptions := e.Descriptions[name]
	for _, path := range slices.Sorted(maps.Keys(descriptions)) {
		field := schema
		if path != "." {
			var err error
			if field, err = lookup(schema, path); err != nil {
				return err
			}
		}
		field["description"] = descriptions[path]
	}
	return nil
}

func schemaOf(version map[string]any) (map[string]any, error) {
	if outer, ok := version["schema"].(map[string]any); ok {
		if schema, ok := outer["openAPIV3Schema"].(map[string]any); ok {
			return schema, nil
		}
	}
	return nil, fmt.Errorf("version %v has no schema", version["name"])
}

// lookup finds a field by its dotted path; "[]" behind a name goes into the
// items of a list.
func lookup(schema map[string]any, path string) (map[string]any, error) {
	field := schema
	for part := range strings.SplitSeq(path, ".") {
		name, intoItems := strings.CutSuffix(part, "[]")
		properties, ok := field["properties"].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: nothing below it", path)
		}
		if field, ok = properties[name].(map[string]any); !ok {
			return nil, fmt.Errorf("%s: no field %s", path, name)
		}
		if !intoItems {
			continue
		}
		if field, ok = field["items"].(map[string]any); !ok {
			return nil, fmt.Errorf("%s: %s is no list", path, name)
		}
	}
	return field, nil
}
