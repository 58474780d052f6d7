package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// Format is an output format.
type Format string

// The output formats of the commands. The machine formats are kubectl's and are
// not listed here.
const (
	Text     Format = "text"
	TableFmt Format = "table"
	Wide     Format = "wide"
	Name     Format = "name"
	// YAML is a machine format that some commands print as a stream of documents.
	YAML Format = "yaml"
)

const (
	jsonPathPrefix      = "jsonpath="
	customColumnsPrefix = "custom-columns="
)

// Output is the value of -o: a format of the command, or one of kubectl's machine
// formats (json, yaml, jsonpath and the like).
type Output struct {
	// Format is the chosen format, with its template.
	Format Format
	own    []Format
	// printer prints a machine format; nil for the formats of the command.
	printer printers.ResourcePrinter
	// list says that the command prints a list, with kubectl's flags for it.
	list                  bool
	noHeaders, showLabels bool
	sortBy                sortBy
}

var _ pflag.Value = (*Output)(nil)

// NewOutput returns an output flag with the formats of a command, the first of
// which is the default, and every machine format.
func NewOutput(own ...Format) *Output { return &Output{Format: own[0], own: own} }

// ListOutput is the output flag of a command that prints a list of objects, and its
// further formats.
func ListOutput(further ...Format) *Output {
	o := NewOutput(append([]Format{TableFmt, Wide, Name}, further...)...)
	o.list = true
	return o
}

// AddTo registers -o on a command.
func (o *Output) AddTo(cmd *cobra.Command) {
	addValue(cmd, o, o.choices("="), "output", "o", "Output format"+oneOf(o.choices("=...")))
	if !o.list {
		return
	}
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Do not print the headers of a table")
	cmd.Flags().Var(&o.sortBy, "sort-by", "Sort the items by a field, a JSONPath such as .metadata.creationTimestamp")
}

// choices are the valid formats; those that need a template are followed by it.
func (o *Output) choices(template string) []string {
	var choices []string
	for _, format := range o.own {
		choices = append(choices, string(format))
	}
	choices = append(choices, genericclioptions.NewJSONYamlPrintFlags().AllowedFormats()...)
	for _, format := range []string{"jsonpath", "jsonpath-as-json", "jsonpath-file", "go-template", "go-template-file", "custom-columns"} {
		choices = append(choices, format+template)
	}
	return choices
}

// String implements pflag.Value.
func (o *Output) String() string { return string(o.Format) }

// Type implements pflag.Value.
func (o *Output) Type() string { return "string" }

// Set implements pflag.Value.
func (o *Output) Set(s string) error {
	if slices.Contains(o.own, Format(s)) {
		o.Format, o.printer = Format(s), nil
		return nil
	}
	printer, err := newPrinter(s, &o.noHeaders)
	name, _, templated := strings.Cut(s, "=")
	switch {
	case err == nil:
		o.Format, o.printer = Format(s), printer
		return nil
	case !templated || genericclioptions.IsNoCompatiblePrinterError(err):
		return fmt.Errorf("must be one of %s", strings.Join(o.choices("=..."), ", "))
	default:
		return fmt.Errorf("%s: %w", name, err)
	}
}

// newPrinter returns the printer of a machine format. What an object does not have is
// empty in a template, as kubectl has it.
func newPrinter(format string, noHeaders *bool) (printers.ResourcePrinter, error) {
	if spec, ok := strings.CutPrefix(format, customColumnsPrefix); ok {
		return newCustomColumns(spec, noHeaders)
	}
	if path, ok := strings.CutPrefix(format, jsonPathPrefix); ok {
		format = jsonPathPrefix + braced(path)
	}
	flags := genericclioptions.PrintFlags{
		JSONYamlPrintFlags:   genericclioptions.NewJSONYamlPrintFlags(),
		TemplatePrinterFlags: genericclioptions.NewKubeTemplatePrintFlags(),
		OutputFormat:         &format,
	}
	return flags.ToPrinter()
}

// Machine reports whether the format is made for programs.
func (o *Output) Machine() bool { return o.printer != nil }

// Object prints v as a document in a machine format.
func (o *Output) Object(w io.Writer, h Header, v any) error {
	data, err := withHeader(h, v)
	if err != nil {
		return err
	}
	return o.document(w, data)
}

// Manifests prints objects of the API as the List of them that kubectl takes, in a machine
// format.
func (o *Output) Manifests(w io.Writer, objects any) error {
	data, err := encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		return err
	}
	return o.document(w, data)
}

// document prints JSON in a machine format.
func (o *Output) document(w io.Writer, data []byte) error {
	if err := o.printer.PrintObj(&runtime.Unknown{Raw: data}, w); err != nil {
		// What follows is the whole object, in which there may be a token.
		problem, _, _ := strings.Cut(err.Error(), " Printing more information")
		return Usagef("%s", problem)
	}
	return nil
}

// PrintJSON prints v as JSON.
func PrintJSON(w io.Writer, v any) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	return (&printers.JSONPrinter{}).PrintObj(&runtime.Unknown{Raw: data}, w)
}
