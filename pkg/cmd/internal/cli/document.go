package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// The machine formats print schemas of this program and not objects of the API, which
// "kubectl get" prints: scripts need what no object says, such as when a credential
// expires. Every document and every item of a list has the fields by which kubectl's
// users and tools look for objects, so that a path such as .metadata.name works with
// both.

// Header begins every document and every item of a list.
type Header struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   *Metadata `json:"metadata,omitempty"`
}

// Metadata is what identifies the object of the API that an item stands for.
type Metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	CreationTimestamp *time.Time        `json:"creationTimestamp,omitempty"`
}

// Ref is what an item stands for.
type Ref struct {
	Metadata

	// Type is the type as kubectl prints it, TYPE.GROUP; empty for what is no object
	// of the API.
	Type string
}

// RefTo returns what an item stands for, without labels.
func RefTo(kind, namespace, name string, created time.Time) Ref {
	r := Ref{Type: kind, Metadata: Metadata{Namespace: namespace, Name: name}}
	if !created.IsZero() {
		r.CreationTimestamp = new(created.UTC())
	}
	return r
}

// RefToKind is RefTo for an object by its kind.
func RefToKind(kind schema.GroupKind, namespace, name string) Ref {
	kind.Kind = strings.ToLower(kind.Kind)
	return RefTo(kind.String(), namespace, name, time.Time{})
}

// String is what -o name prints, and kubectl takes in the namespace of the object.
func (r Ref) String() string {
	if r.Type == "" {
		return r.Name
	}
	return r.Type + "/" + r.Name
}

// Full is what lines name an object by: with its namespace.
func (r Ref) Full() string {
	if r.Namespace == "" {
		return r.String()
	}
	return r.Type + "/" + r.Namespace + "/" + r.Name
}

// Kind describes the items of a list: their kind in the machine formats, and what they
// stand for; nil for nothing.
type Kind[T any] struct {
	Name string
	Ref  func(T) Ref
}

// kind is a Kind without its type: what prints is compiled once, and not for each type.
type kind struct {
	name string
	ref  func(any) Ref
}

func (k Kind[T]) plain() kind {
	out := kind{name: k.Name}
	if k.Ref != nil {
		out.ref = func(item any) Ref { return k.Ref(item.(T)) } //nolint:errcheck // plainItems made it of one
	}
	return out
}

// plainItems are items without their type.
func plainItems[T any](items []T) []any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = item
	}
	return out
}

// list returns items as a document.
func (k kind) list(items []any) ([]byte, error) {
	list := struct {
		Header

		Items []json.RawMessage `json:"items"`
	}{Header{APIVersion: names.CLIVersion, Kind: k.name + "List"}, make([]json.RawMessage, len(items))}
	for i, item := range items {
		var err error
		if list.Items[i], err = k.item(item); err != nil {
			return nil, err
		}
	}
	return encode(list)
}

// item returns one item as a document.
func (k kind) item(item any) (json.RawMessage, error) {
	header := Header{Kind: k.name}
	if k.ref != nil {
		header.Metadata = new(k.ref(item).Metadata)
	}
	return withHeader(header, item)
}

// withHeader returns v as JSON, behind a header.
func withHeader(h Header, v any) (json.RawMessage, error) {
	h.APIVersion = names.CLIVersion
	head, err := encode(h)
	if err != nil {
		return nil, err
	}
	body, err := encode(v)
	if err != nil {
		return nil, err
	}
	between := ","
	if bytes.Equal(body, []byte("{}")) {
		between = ""
	}
	return json.RawMessage(strings.TrimSuffix(string(head), "}") + between + strings.TrimPrefix(string(body), "{")), nil
}

// encode returns a value as JSON. It keeps <, > and &: the output is read on terminals
// and put into shells, not into HTML.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode output: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}
