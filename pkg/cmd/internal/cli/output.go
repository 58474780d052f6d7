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
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// Format is an output format.
type Format string

// The output formats. JSONPath is followed by "=" and a template.
const (
	Text     Format = "text"
	TableFmt Format = "table"
	Wide     Format = "wide"
	JSON     Format = "json"
	YAML     Format = "yaml"
	Name     Format = "name"
	JSONPath Format = "jsonpath"
)

// Output is the value of -o.
type Output struct {
	Format   Format
	template string
	valid    []Format
}

var _ pflag.Value = (*Output)(nil)

// NewOutput returns an output flag; the first format is the default.
func NewOutput(valid ...Format) *Output { return &Output{Format: valid[0], valid: valid} }

// ListOutput is the output flag of a command that prints a list of objects.
func ListOutput() *Output { return NewOutput(TableFmt, Wide, JSON, YAML, Name, JSONPath) }

// AddTo registers -o on a command.
func (o *Output) AddTo(cmd *cobra.Command) {
	choices := make([]string, len(o.valid))
	for i, f := range o.valid {
		choices[i] = string(f)
		if f == JSONPath {
			choices[i] += "="
		}
	}
	addValue(cmd, o, choices, "output", "o", "output format")
}

// String implements pflag.Value.
func (o *Output) String() string { return string(o.Format) }

// Type implements pflag.Value.
func (o *Output) Type() string {
	choices := make([]string, len(o.valid))
	for i, f := range o.valid {
		choices[i] = string(f)
	}
	return strings.Join(choices, "|")
}

// Set implements pflag.Value.
func (o *Output) Set(s string) error {
	name, template, hasTemplate := strings.Cut(s, "=")
	if !slices.Contains(o.valid, Format(name)) || hasTemplate != (Format(name) == JSONPath) {
		return fmt.Errorf("must be one of %s", strings.ReplaceAll(o.Type(), "|", ", "))
	}
	if hasTemplate {
		if err := jsonpath.New("output").Parse(braced(template)); err != nil {
			return fmt.Errorf("jsonpath: %w", err)
		}
	}
	o.Format, o.template = Format(name), template
	return nil
}

// Object prints v as JSON, YAML or by the JSONPath template. It is for the
// machine formats only.
func (o *Output) Object(w io.Writer, v any) error {
	data, err := encode(v)
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	switch o.Format {
	case YAML:
		if data, err = yaml.JSONToYAML(data); err != nil {
			return fmt.Errorf("encode output: %w", err)
		}
	case JSONPath:
		if data, err = o.query(data); err != nil {
			return err
		}
	default: // JSON as it is
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
	return o.Format == JSON || o.Format == YAML || o.Format == JSONPath
}

func (o *Output) query(data []byte) ([]byte, error) {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("encode output: %w", err)
	}
	path := jsonpath.New("output")
	if err := path.Parse(braced(o.template)); err != nil {
		return nil, Usagef("jsonpath: %v", err)
	}
	var out bytes.Buffer
	if err := path.Execute(&out, v); err != nil {
		return nil, Usagef("jsonpath: %v", err)
	}
	return out.Bytes(), nil
}

// braced lets a user leave out the braces of a simple template, as kubectl does.
func braced(template string) string {
	if strings.Contains(template, "{") {
		return template
	}
	return "{" + template + "}"
}
