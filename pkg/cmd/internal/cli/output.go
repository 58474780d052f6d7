package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Format is an output format.
type Format string

// The output formats. The last three are followed by "=" and a template.
const (
	Text          Format = "text"
	TableFmt      Format = "table"
	Wide          Format = "wide"
	JSON          Format = "json"
	YAML          Format = "yaml"
	Name          Format = "name"
	JSONPath      Format = "jsonpath"
	GoTemplate    Format = "go-template"
	CustomColumns Format = "custom-columns"
)

// templated reports whether a format is followed by a template.
func (f Format) templated() bool { return f == JSONPath || f == GoTemplate || f == CustomColumns }

// Output is the value of -o.
type Output struct {
	Format Format
	valid  []Format
	// object prints an object by the template.
	object func(io.Writer, any) error
}

var _ pflag.Value = (*Output)(nil)

// NewOutput returns an output flag; the first format is the default. Where
// JSONPath is valid, the other templates are.
func NewOutput(valid ...Format) *Output {
	if slices.Contains(valid, JSONPath) {
		valid = append(valid, GoTemplate, CustomColumns)
	}
	return &Output{Format: valid[0], valid: valid}
}

// ListOutput is the output flag of a command that prints a list of objects.
func ListOutput() *Output { return NewOutput(TableFmt, Wide, JSON, YAML, Name, JSONPath) }

// AddTo registers -o on a command.
func (o *Output) AddTo(cmd *cobra.Command) {
	addValue(cmd, o, o.choices("="), "output", "o", "output format: "+strings.Join(o.choices("=..."), ", "))
}

// choices are the valid formats, with what follows the templated ones.
func (o *Output) choices(template string) []string {
	choices := make([]string, len(o.valid))
	for i, f := range o.valid {
		choices[i] = string(f)
		if f.templated() {
			choices[i] += template
		}
	}
	return choices
}

// String implements pflag.Value.
func (o *Output) String() string { return string(o.Format) }

// Type implements pflag.Value.
func (o *Output) Type() string { return "FORMAT" }

// Set implements pflag.Value.
func (o *Output) Set(s string) error {
	name, template, hasTemplate := strings.Cut(s, "=")
	format := Format(name)
	if !slices.Contains(o.valid, format) || hasTemplate != format.templated() {
		return fmt.Errorf("must be one of %s", strings.Join(o.choices("=..."), ", "))
	}
	var err error
	switch format {
	case JSONPath:
		o.object, err = jsonPath(template)
	case GoTemplate:
		o.object, err = goTemplate(template)
	case CustomColumns:
		o.object, err = customColumns(template)
	default:
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	o.Format = format
	return nil
}

// Object prints v as JSON, YAML or by the template. It is for the machine formats
// only.
func (o *Output) Object(w io.Writer, v any) error {
	data, err := encode(v)
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	switch {
	case o.Format == YAML:
		if data, err = yaml.JSONToYAML(data); err != nil {
			return fmt.Errorf("encode output: %w", err)
		}
	case o.object != nil:
		var plain any
		if err := json.Unmarshal(data, &plain); err != nil {
			return fmt.Errorf("encode output: %w", err)
		}
		if err := o.object(w, plain); err != nil {
			return Usagef("%s: %v", o.Format, err)
		}
		return nil
	}
	_, err = w.Write(data)
	return err
}

// encode returns indented JSON that keeps <, > and &: it is read by people and
// put into shells, not into HTML.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(v)
	return out.Bytes(), err
}

// Machine reports whether the format is made for programs.
func (o *Output) Machine() bool {
	return o.Format == JSON || o.Format == YAML || o.Format.templated()
}
