package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/strictjson"
)

func TestObject(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	var wide strings.Builder
	for i := range 100 {
		fmt.Fprintf(&wide, `"m%d":%d,`, i, i)
	}
	tests := []struct {
		name, data string
		want       error // Nil: it is taken.
	}{
		{"an empty object", `{}`, nil},
		{"space everywhere", " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n", nil},
		{"every kind of value", `{"a":true,"b":false,"c":null,"d":"x","e":-1.5e+3,"f":[],"g":{}}`, nil},
		{"every escape", `{"a":"\"\\\/\b\f\n\r\t\u0041\ud83d\ude00é"}`, nil},
		{"names that differ in case", `{"iss":1,"ISS":2}`, nil},
		{"the same name in two objects", `{"a":{"x":1},"b":{"x":1}}`, nil},
		{"a hundred members", `{` + wide.String() + `"last":0}`, nil},
		{"the deepest nesting", deep(strictjson.MaxDepth), nil},

		{"a repeated member", `{"a":1,"a":1}`, strictjson.ErrDuplicate},
		{"a repeated member that is escaped", `{"iss":1,"\u0069ss":1}`, strictjson.ErrDuplicate},
		{"a repeated member further down", `{"a":[{"b":{"c":1,"d":2,"c":3}}]}`, strictjson.ErrDuplicate},
		{"a repeated member among a hundred", `{` + wide.String() + `"m99":0}`, strictjson.ErrDuplicate},
		{"an early one repeated among a hundred", `{` + wide.String() + `"m3":0}`, strictjson.ErrDuplicate},
		{"one more than the deepest nesting", deep(strictjson.MaxDepth + 1), strictjson.ErrDepth},
		{"an array", `[]`, strictjson.ErrType},
		{"a number", `1`, strictjson.ErrType},
		{"nothing", ``, strictjson.ErrSyntax},
		{"two documents", `{}{}`, strictjson.ErrSyntax},
		{"a byte order mark", "\ufeff{}", strictjson.ErrSyntax},
		{"an open object", `{"a":1`, strictjson.ErrSyntax},
		{"a comma before the end", `{"a":1,}`, strictjson.ErrSyntax},
		{"a comma before the end of an array", `{"a":[1,]}`, strictjson.ErrSyntax},
		{"a comma at the beginning", `{,"a":1}`, strictjson.ErrSyntax},
		{"no comma", `{"a":1 "b":2}`, strictjson.ErrSyntax},
		{"no colon", `{"a" 1}`, strictjson.ErrSyntax},
		{"no value", `{"a":}`, strictjson.ErrSyntax},
		{"a name without quotes", `{a:1}`, strictjson.ErrSyntax},
		{"single quotes", `{'a':1}`, strictjson.ErrSyntax},
		{"a comment", `{/**/"a":1}`, strictjson.ErrSyntax},
		{"a leading zero", `{"a":01}`, strictjson.ErrSyntax},
		{"a leading plus", `{"a":+1}`, strictjson.ErrSyntax},
		{"a number without digits", `{"a":-}`, strictjson.ErrSyntax},
		{"a number that ends in its point", `{"a":1.}`, strictjson.ErrSyntax},
		{"a number that ends in its exponent", `{"a":1e}`, strictjson.ErrSyntax},
		{"a hexadecimal number", `{"a":0x1}`, strictjson.ErrSyntax},
		{"NaN", `{"a":NaN}`, strictjson.ErrSyntax},
		{"a misspelt literal", `{"a":nul}`, strictjson.ErrSyntax},
		{"True", `{"a":True}`, strictjson.ErrSyntax},
		{"a line break in a string", "{\"a\":\"\n\"}", strictjson.ErrSyntax},
		{"a NUL in a name", "{\"a\x00\":1}", strictjson.ErrSyntax},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", strictjson.ErrSyntax},
		{"invalid UTF-8 behind an escape", "{\"a\":\"\\n\xff\"}", strictjson.ErrSyntax},
		{"an overlong form", "{\"a\":\"\xc0\xaf\"}", strictjson.ErrSyntax},
		{"a lone surrogate", `{"a":"\ud800"}`, strictjson.ErrSyntax},
		{"surrogates in the wrong order", `{"a":"\ude00\ud83d"}`, strictjson.ErrSyntax},
		{"an unknown escape", `{"a":"\x41"}`, strictjson.ErrSyntax},
		{"an escape that is cut off", `{"a":"\u00`, strictjson.ErrSyntax},
		{"an escape of a signed number", `{"a":"\u+041"}`, strictjson.ErrSyntax},
		{"an open string", `{"a":"x`, strictjson.ErrSyntax},
		{"an open string behind an escape", `{"a":"\nx`, strictjson.ErrSyntax},
		{"a backslash at the end", `{"a":"\`, strictjson.ErrSyntax},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := decode([]byte(tt.data)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	readers := map[string]func(*strictjson.Reader) error{
		"string": func(r *strictjson.Reader) error { _, err := r.String(); return err },
		"number": func(r *strictjson.Reader) error { _, err := r.Number(); return err },
		"array":  func(r *strictjson.Reader) error { return r.Array((*strictjson.Reader).Skip) },
		"object": func(r *strictjson.Reader) error {
			return r.Object(func(_ []byte, r *strictjson.Reader) error { return r.Skip() })
		},
	}
	values := map[string]string{"string": `"1"`, "number": `1`, "array": `[]`, "object": `{}`, "null": `null`, "true": `true`}
	for wanted, read := range readers {
		for given, value := range values {
			err := strictjson.Object([]byte(`{"a": `+value+`}`), func(_ []byte, r *strictjson.Reader) error { return read(r) })
			if ok := err == nil; ok != (wanted == given) {
				t.Errorf("reading a %s from %s: %v", wanted, value, err)
			}
			if err != nil && !errors.Is(err, strictjson.ErrType) {
				t.Errorf("reading a %s from %s: %v, want %v", wanted, value, err, strictjson.ErrType)
			}
		}
	}
	err := strictjson.Object([]byte(`{"a":1e999}`), func(_ []byte, r *strictjson.Reader) error { _, err := r.Number(); return err })
	if !errors.Is(err, strictjson.ErrSyntax) {
		t.Errorf("a number that no float64 holds: %v", err)
	}
}

// decode reads an object as encoding/json does.
func decode(data []byte) (map[string]any, error) {
	all := map[string]any{}
	err := strictjson.Object(data, member(all))
	return all, err
}

func member(all map[string]any) func([]byte, *strictjson.Reader) error {
	return func(name []byte, r *strictjson.Reader) error {
		value, err := value(r)
		all[string(name)] = value
		return err
	}
}

func value(r *strictjson.Reader) (any, error) {
	switch kind := r.Kind(); kind {
	case '{':
		all := map[string]any{}
		return all, r.Object(member(all))
	case '[':
		all := []any{}
		return all, r.Array(func(r *strictjson.Reader) error {
			one, err := value(r)
			all = append(all, one)
			return err
		})
	case '"':
		return r.String()
	case 't', 'f':
		return kind == 't', r.Skip()
	case 'n':
		return nil, r.Skip()
	default:
		return r.Number()
	}
}

// FuzzObject demands of whatever is taken that encoding/json takes it too, and
// reads the same.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":[1,{"b":"c"}],"d":null}`, `{"a":"\ud83d\ude00\u00e9"}`, `{"a":-0.5e-7}`, `{"a":1,"a":2}`,
		`{"iss":"x","aud":["y"],"exp":1700003607,"kubernetes.io":{"namespace":"n","serviceaccount":{"name":"s","uid":"u"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decode(data)
		if err != nil {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("taken, but encoding/json says: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("read differently (-encoding/json +ours):\n%s", diff)
		}
	})
}
