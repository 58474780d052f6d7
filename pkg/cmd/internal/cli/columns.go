package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// customColumns prints an object or the items of a list as a table of HEADER:JSONPATH
// pairs. kubectl's printer is in the package of "kubectl get", which adds 2 MB to
// the binary and doubles the time that a command needs to start.
type customColumns struct {
	headers []string
	// noHeaders is --no-headers, and printed that the headers were.
	noHeaders *bool
	printed   bool
	paths     []*jsonpath.JSONPath
}

// noValue is shown where an item has no value.
const noValue = "<none>"

func newCustomColumns(spec string, noHeaders *bool) (*customColumns, error) {
	c := &customColumns{noHeaders: noHeaders}
	for column := range strings.SplitSeq(spec, ",") {
		header, expression, ok := strings.Cut(column, ":")
		if !ok || header == "" || expression == "" {
			return nil, fmt.Errorf("%q is not HEADER:JSONPATH", column)
		}
		path, err := fieldPath(expression)
		if err != nil {
			return nil, err
		}
		c.headers, c.paths = append(c.headers, header), append(c.paths, path)
	}
	return c, nil
}

// PrintObj implements printers.ResourcePrinter.
func (c *customColumns) PrintObj(object runtime.Object, w io.Writer) error {
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var list struct {
		Items []any `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if list.Items == nil {
		var single any
		if err := json.Unmarshal(data, &single); err != nil {
			return err
		}
		list.Items = []any{single}
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	if !c.printed && !*c.noHeaders {
		_, _ = fmt.Fprintln(table, strings.Join(c.headers, "\t"))
	}
	c.printed = true
	for _, item := range list.Items {
		cells := make([]string, len(c.paths))
		for i, path := range c.paths {
			if cells[i], err = cell(path, item); err != nil {
				return err
			}
		}
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
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
		return noValue, nil
	}
	return strings.Join(values, ","), nil
}

// braced completes a simple path: the braces and the dot in the beginning may be
// left out.
func braced(template string) string {
	if strings.Contains(template, "{") {
		return template
	}
	if !strings.HasPrefix(template, ".") && !strings.HasPrefix(template, "[") {
		template = "." + template
	}
	return "{" + template + "}"
}
