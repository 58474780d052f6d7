package conversion

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// parts is the content of a carrier: by field, the values that the version of the
// carrier's object cannot express.
type parts map[string]any

// takeCarrier removes the annotation called key from an object and returns what
// it held. What cannot be read is nothing: a person may write what he likes
// into an annotation, and one object must not make a list unreadable.
func takeCarrier(annotations map[string]any, key string) parts {
	text, ok := annotations[key].(string)
	delete(annotations, key)
	held := parts{}
	if !ok || utiljson.Unmarshal([]byte(text), &held) != nil {
		return parts{}
	}
	return held
}

// write returns the carrier as an annotation's value.
func (p parts) write() (string, error) {
	data, err := utiljson.Marshal(map[string]any(p))
	if err != nil {
		return "", fmt.Errorf("write down what the other version cannot express: %w", err)
	}
	return string(data), nil
}

// items returns what is held of a list.
func (p parts) items(key string) []map[string]any {
	list, ok := p[key].([]any)
	if !ok {
		return nil
	}
	items, err := objects(list, key)
	if err != nil {
		return nil
	}
	return items
}

// element is one way of an entry of a list from version X to version Y.
type element struct {
	// forward and back convert an entry as far as the other version can express
	// it. Going forward, back and forward again is the same as going forward.
	forward, back func(map[string]any) map[string]any
	// finish, if set, adds to the converted list what is not of one entry.
	finish func([]converted)
}

// converted is an entry after its conversion.
type converted struct {
	entry map[string]any
	// restored says that the entry came out of the carrier.
	restored bool
	// form is the part of it that both versions express; it identifies the entry when
	// the object is converted back.
	form string
}

// convert converts entries. If the carrier has the form of an entry, the entry regains
// its former form of the other version. Entries that share a form are distinguished by
// their order.
func (e element) convert(entries, carried []map[string]any) ([]converted, error) {
	known := map[string][]map[string]any{}
	for _, entry := range carried {
		form, err := formOf(e.forward(e.back(entry)))
		if err != nil {
			return nil, err
		}
		known[form] = append(known[form], entry)
	}
	out := make([]converted, len(entries))
	for i, entry := range entries {
		plain := e.forward(entry)
		form, err := formOf(plain)
		if err != nil {
			return nil, err
		}
		out[i] = converted{entry: plain, form: form}
		if before := known[form]; len(before) > 0 {
			known[form] = before[1:]
			// The driver of a registration is set in what is returned.
			out[i].entry, out[i].restored = runtime.DeepCopyJSON(before[0]), true
		}
	}
	return out, nil
}

// lost returns the entries that the carrier has to hold: those that a conversion back
// would change, and those of the same form, without which the order would not
// distinguish them.
func lost(entries []map[string]any, out []converted, differs func(i int) bool) []map[string]any {
	forms := map[string]bool{}
	for i := range entries {
		if differs(i) {
			forms[out[i].form] = true
		}
	}
	var carry []map[string]any
	for i, entry := range entries {
		if forms[out[i].form] {
			carry = append(carry, entry)
		}
	}
	return carry
}

// formOf writes an entry down in one way only: JSON with sorted keys.
func formOf(entry map[string]any) (string, error) {
	data, err := utiljson.Marshal(entry)
	if err != nil {
		return "", fmt.Errorf("compare entries of a list: %w", err)
	}
	return string(data), nil
}
