package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// edit applies the table to one CRD. A path that does not exist is an error, so
// that the table follows the API module.
func (e *edits) edit(name string, crd map[string]any) error {
	versions := versionsOf(crd)
	if spec, ok := crd["spec"].(map[string]any); ok && len(versions) > 1 {
		spec["conversion"] = e.conversion(name)
	}
	for _, version := range versions {
		schema, err := schemaOf(version)
		if err != nil {
			return err
		}
		if err := e.removeDefaults(name, schema); err != nil {
			return err
		}
		// What differs between the versions stands in an entry of its own.
		for _, entry := range []string{name, fmt.Sprintf("%s/%v", name, version["name"])} {
			if err := e.describe(entry, schema); err != nil {
				return err
			}
			if columns := e.Columns[entry]; columns != nil {
				version["additionalPrinterColumns"] = columns
			}
		}
	}
	return nil
}

// conversion says who converts between the versions of a CRD: the API server,
// which only changes apiVersion and drops what the other version lacks, or our
// webhook (contract C.1). Its namespace and CA are the installation's.
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

// describe fills in what kubectl explain shows. The descriptions of the API
// module are left out of the schema, because they are long and not ours.
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
