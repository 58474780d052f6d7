package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// edit applies the table to one CRD. A path that does not exist is an error, so
// that the table follows the API module.
func (e *edits) edit(crd *apiextensionsv1.CustomResourceDefinition) error {
	versions := crd.Spec.Versions
	last := len(versions) - 1
	// The newest version is stored: our own components use it, so that their requests
	// need no conversion and a stopped conversion webhook affects only old clients.
	for i := range versions {
		versions[i].Storage = i == last
	}
	// Added versions are not stored: the CRD of an installation without them could not
	// be applied over ours, because a stored version cannot be removed.
	for _, name := range e.AddVersions[crd.Name] {
		if slices.ContainsFunc(versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name }) {
			return fmt.Errorf("the API module publishes %s itself: remove it from addVersions", name)
		}
		added := versions[last].DeepCopy()
		added.Name, added.Storage = name, false
		crd.Spec.Versions = append(crd.Spec.Versions, *added)
	}
	for i := range crd.Spec.Versions {
		if err := e.editVersion(crd.Name, &crd.Spec.Versions[i]); err != nil {
			return err
		}
	}
	if len(crd.Spec.Versions) > 1 {
		crd.Spec.Conversion = e.conversion(crd.Name)
	}
	return nil
}

func (e *edits) editVersion(name string, version *apiextensionsv1.CustomResourceDefinitionVersion) error {
	schema := version.Schema.OpenAPIV3Schema
	undescribe(schema)
	for _, path := range e.RemoveDefaults[name] {
		if err := editField(schema, path, func(field *apiextensionsv1.JSONSchemaProps) bool {
			had := field.Default != nil
			field.Default = nil
			return had
		}); err != nil {
			return err
		}
	}
	for path, pattern := range e.Patterns[name] {
		if err := editField(schema, path, func(field *apiextensionsv1.JSONSchemaProps) bool {
			had := field.Pattern != ""
			field.Pattern = pattern
			return had
		}); err != nil {
			return err
		}
	}
	// An entry with the version is for what differs between the versions.
	for _, entry := range []string{name, name + "/" + version.Name} {
		for path, description := range e.Descriptions[entry] {
			if err := editField(schema, path, func(field *apiextensionsv1.JSONSchemaProps) bool {
				field.Description = description
				return true
			}); err != nil {
				return err
			}
		}
		version.AdditionalPrinterColumns = withColumns(version.AdditionalPrinterColumns, e.Columns[entry])
	}
	return nil
}

// withColumns adds printer columns to the published ones, whose order stays:
// scripts count them. An age, which users look for at the end, stays last.
func withColumns(published, added []apiextensionsv1.CustomResourceColumnDefinition) []apiextensionsv1.CustomResourceColumnDefinition {
	end := len(published)
	if end > 0 && published[end-1].JSONPath == ".metadata.creationTimestamp" {
		end--
	}
	return slices.Insert(slices.Clone(published), end, added...)
}

// undescribe removes the API module's descriptions, which are long and not ours.
func undescribe(schema *apiextensionsv1.JSONSchemaProps) {
	schema.Description = ""
	for name, field := range schema.Properties {
		undescribe(&field)
		schema.Properties[name] = field
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		undescribe(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		undescribe(schema.AdditionalProperties.Schema)
	}
	for _, alternatives := range [][]apiextensionsv1.JSONSchemaProps{schema.AllOf, schema.AnyOf, schema.OneOf} {
		for i := range alternatives {
			undescribe(&alternatives[i])
		}
	}
}

// conversion returns how a CRD's versions are converted: by the API server, which
// changes apiVersion only and drops what the other version lacks, or by our webhook,
// whose CA the installation sets.
func (e *edits) conversion(name string) *apiextensionsv1.CustomResourceConversion {
	if !slices.Contains(e.Converted, name) {
		return &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1", "v1beta1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: names.HubNamespace, Name: names.AddOnWebhookService, Port: new(int32(names.AddOnWebhookPort)), Path: new("/convert"),
			}},
		},
	}
}

// editField changes the field at a path. It fails if there is no such field, or
// change reports that the field no longer has what the table changes.
func editField(schema *apiextensionsv1.JSONSchemaProps, path string, change func(*apiextensionsv1.JSONSchemaProps) bool) error {
	head, rest, nested := strings.Cut(path, ".")
	if head == "" { // The path "." is the schema itself.
		if !change(schema) {
			return errors.New("the API module no longer has what the table changes")
		}
		return nil
	}
	name, isList := strings.CutSuffix(head, "[]")
	field, ok := schema.Properties[name]
	if !ok {
		return fmt.Errorf("no field %s", path)
	}
	target := &field
	if isList {
		if field.Items == nil || field.Items.Schema == nil {
			return fmt.Errorf("%s is no list", path)
		}
		target = field.Items.Schema
	}
	if !nested {
		rest = "."
	}
	if err := editField(target, rest, change); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	schema.Properties[name] = field
	return nil
}
