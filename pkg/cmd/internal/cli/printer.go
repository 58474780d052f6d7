package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/jsonpath"
)

// printer prints items of a kind: a list, or items as they change.
type printer struct {
	writer  io.Writer
	out     *Output
	kind    kind
	columns []column

	// table is that of the rows so far.
	table *table
}

// list prints items as a list.
func (p *printer) list(items []any) error {
	if !p.out.Machine() {
		return p.rows(items)
	}
	data, err := p.kind.list(items)
	if err != nil {
		return err
	}
	return p.out.document(p.writer, data)
}

// each prints items one by one.
func (p *printer) each(items []any) error {
	if !p.out.Machine() {
		return p.rows(items)
	}
	for _, item := range items {
		data, err := p.kind.item(item)
		if err != nil {
			return err
		}
		if err := p.out.document(p.writer, data); err != nil {
			return err
		}
	}
	return nil
}

// rows prints a line for each item.
func (p *printer) rows(items []any) error {
	if p.out.Format == Name {
		for _, item := range items {
			if _, err := fmt.Fprintln(p.writer, p.kind.ref(item)); err != nil {
				return err
			}
		}
		return nil
	}
	if p.table == nil {
		columns, width := shown(p.columns, p.out.Format, items), Columns
		if p.out.showLabels {
			columns = append(columns, labelsColumn(p.kind))
		}
		if p.out.Format == Wide {
			width = wideColumns
		}
		p.table = &table{out: p.writer, columns: columns, width: widthOf(p.writer, width), noHeaders: p.out.noHeaders}
	}
	return p.table.print(items)
}

// sorted returns items in the order of what --sort-by names of each.
func (k kind) sorted(items []any, by sortBy) ([]any, error) {
	if by == "" || len(items) == 0 {
		return items, nil
	}
	path, err := fieldPath(string(by))
	if err != nil {
		return nil, err
	}
	type keyed struct {
		item any
		key  string
	}
	list, found := make([]keyed, len(items)), false
	for i, item := range items {
		key, err := k.value(path, item)
		if err != nil {
			return nil, Usagef("--sort-by: %v", err)
		}
		list[i] = keyed{item, key}
		found = found || key != ""
	}
	if !found {
		return nil, Usagef("--sort-by: no item has the field %s", by)
	}
	slices.SortStableFunc(list, func(a, b keyed) int { return compare(a.key, b.key) })
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i].item
	}
	return out, nil
}

// fieldPath reads the path of a field.
func fieldPath(text string) (*jsonpath.JSONPath, error) {
	path := jsonpath.New(text).AllowMissingKeys(true)
	return path, path.Parse(braced(text))
}

// value is what a path finds in an item; empty for nothing.
func (k kind) value(path *jsonpath.JSONPath, item any) (string, error) {
	data, err := k.item(item)
	if err != nil {
		return "", err
	}
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		return "", err
	}
	found, err := cell(path, document)
	if found == noValue {
		found = ""
	}
	return found, err
}

// compare orders numbers and quantities by their size, and other values as text.
func compare(a, b string) int {
	x, errX := resource.ParseQuantity(a)
	y, errY := resource.ParseQuantity(b)
	if errX == nil && errY == nil {
		return x.Cmp(y)
	}
	return cmp.Compare(a, b)
}
