package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// jsonPath returns a printer of plain objects by a JSONPath template.
func jsonPath(template string) (func(io.Writer, any) error, error) {
	path := jsonpath.New("output")
	if err := path.Parse(braced(template)); err != nil {
		return nil, err
	}
	return path.Execute, nil
}

// goTemplate returns a printer of plain objects by a template of Go.
func goTemplate(template string) (func(io.Writer, any) error, error) {
	printer, err := printers.NewGoTemplatePrinter([]byte(template))
	if err != nil {
		return nil, err
	}
	return func(w io.Writer, v any) error {
		content, ok := v.(map[string]any)
		if !ok {
			return errors.New("there is no object to print")
		}
		return printer.PrintObj(&unstructured.Unstructured{Object: content}, w)
	}, nil
}

// customColumns returns a printer of plain objects as a table, by HEADER:JSONPATH
// pairs. The printer of kubectl would do, but the package that it is in brings 130
// others along, kustomize among them.
func customColumns(spec string) (func(io.Writer, any) error, error) {
	var headers []string
	var paths []*jsonpath.JSONPath
	for column := range strings.SplitSeq(spec, ",") {
		header, expression, ok := strings.Cut(column, ":")
		if !ok || header == "" || expression == "" {
			return nil, fmt.Errorf("%q is not HEADER:JSONPATH", column)
		}
		path := jsonpath.New(header).AllowMissingKeys(true)
		if err := path.Parse(braced(expression)); err != nil {
			return nil, err
		}
		headers, paths = append(headers, header), append(paths, path)
	}
	return func(w io.Writer, v any) error {
		table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, strings.Join(headers, "\t"))
		for _, item := range itemsOf(v) {
			cells := make([]string, len(paths))
			for i, path := range paths {
				var err error
				if cells[i], err = cell(path, item); err != nil {
					return err
				}
			}
			_, _ = fmt.Fprintln(table, strings.Join(cells, "\t"))
		}
		return table.Flush()
	}, nil
}

// itemsOf returns the items of a list; another object is its own only item.
func itemsOf(v any) []any {
	if content, ok := v.(map[string]any); ok {
		if items, ok := content["items"].([]any); ok {
			return items
		}
	}
	return []any{v}
}

func cell(path *jsonpath.JSONPath, item any) (string, error) {
	found, err := path.FindResults(item)
	if err != nil {
		return "", err
	}
	var values []string
	for _, group := range found {
		for _, value := range group {
			values = append(values, fmt.Sprint(value.Interface()))
		}
	}
	if len(values) == 0 {
		return "<none>", nil
	}
	return strings.Join(values, ","), nil
}

// braced completes a simple path, as kubectl does: the braces and the dot in the
// beginning may be left out.
func braced(template string) string {
	if strings.Contains(template, "{") {
		return template
	}
	if !strings.HasPrefix(template, ".") && !strings.HasPrefix(template, "[") {
		template = "." + template
	}
	return "{" + template + "}"
}
