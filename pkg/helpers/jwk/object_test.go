package jwk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

func TestObject(t *testing.T) {
	t.Parallel()
	nested := func(n int) string {
		return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	for name, data := range map[string]string{
		"an empty object":              `{}`,
		"space everywhere":             " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n",
		"every kind of value":          `{"a":true,"b":false,"c":null,"d":"x","e":-1.5e+3,"f":[],"g":{}}`,
		"every escape":                 `{"a":"\"\\\/\b\f\n\r\t\u0041\ud83d\ude00é"}`,
		"an escaped backslash":         `{"a":"\\ud800"}`,
		"brackets in a string":         `{"a":"` + strings.Repeat("[", 100) + `"}`,
		"names that differ in case":    `{"iss":"1","ISS":"2"}`,
		"the same name in two objects": `{"a":{"x":"1"},"b":{"x":"1"}}`,
		"the deepest nesting":          nested(32),
	} {
		if _, err := jwk.Object([]byte(data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, data := range map[string]string{
		"a repeated member":                   `{"a":1,"a":1}`,
		"a repeated member that is escaped":   `{"iss":1,"\u0069ss":1}`,
		"a repeated member further down":      `{"a":[{"b":{"c":1,"d":2,"c":3}}]}`,
		"one more than the deepest nesting":   nested(33),
		"a million levels":                    nested(1_000_000),
		"an array":                            `[]`,
		"a number":                            `1`,
		"null":                                `null`,
		"nothing":                             ``,
		"two documents":                       `{}{}`,
		"a byte order mark":                   "\ufeff{}",
		"an open object":                      `{"a":1`,
		"a comma before the end":              `{"a":1,}`,
		"a comma before the end of an array":  `{"a":[1,]}`,
		"a comma at the beginning":            `{,"a":1}`,
		"no comma":                            `{"a":1 "b":2}`,
		"no colon":                            `{"a" 1}`,
		"no value":                            `{"a":}`,
		"a name without quotes":               `{a:1}`,
		"single quotes":                       `{'a':1}`,
		"a comment":                           `{/**/"a":1}`,
		"a leading zero":                      `{"a":01}`,
		"a leading plus":                      `{"a":+1}`,
		"a number without digits":             `{"a":-}`,
		"a number that ends in its point":     `{"a":1.}`,
		"a number that ends in its exponent":  `{"a":1e}`,
		"a number that no float64 stores":     `{"a":1e999}`,
		"a hexadecimal number":                `{"a":0x1}`,
		"NaN":                                 `{"a":NaN}`,
		"a misspelt literal":                  `{"a":nul}`,
		"True":                                `{"a":True}`,
		"a line break in a string":            "{\"a\":\"\n\"}",
		"a NUL in a name":                     "{\"a\x00\":1}",
		"invalid UTF-8":                       "{\"a\":\"\xff\"}",
		"invalid UTF-8 behind an escape":      "{\"a\":\"\\n\xff\"}",
		"an overlong form":                    "{\"a\":\"\xc0\xaf\"}",
		"half a surrogate pair":               `{"a":"\ud800"}`,
		"half a surrogate pair in a name":     `{"\ud800":1}`,
		"half a surrogate pair and an escape": `{"a":"\ud83d\n"}`,
		"half a surrogate pair, cut off":      `{"a":"\ud83d\ude0`,
		"surrogates in the wrong order":       `{"a":"\ude00\ud83d"}`,
		"an unknown escape":                   `{"a":"\x41"}`,
		"an escape that is cut off":           `{"a":"\u00`,
		"an escape of a signed number":        `{"a":"\u+041"}`,
		"an open string":                      `{"a":"x`,
		"an open string behind an escape":     `{"a":"\nx`,
		"a backslash at the end":              `{"a":"\`,
	} {
		if object, err := jwk.Object([]byte(data)); err == nil {
			t.Errorf("%s: got %v", name, object)
		}
	}
}

// FuzzObject: what is accepted, encoding/json reads the same.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":[1,{"b":"c"}],"d":null}`, `{"a":"\ud83d\ude00\u00e9"}`, `{"a":-0.5e-7}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`,
		`{"iss":"x","aud":["y"],"exp":1700003607,"kubernetes.io":{"namespace":"n","serviceaccount":{"name":"s","uid":"u"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := jwk.Object(data)
		if err != nil {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("accepted, but encoding/json says: %v", err)
		}
		numbers := cmp.FilterValues(func(x, y any) bool {
			_, a := x.(int64)
			_, b := y.(int64)
			return a != b
		}, cmp.Comparer(func(x, y any) bool { return toFloat(x) == toFloat(y) }))
		if diff := cmp.Diff(want, got, numbers); diff != "" {
			t.Errorf("read differently (-encoding/json +ours):\n%s", diff)
		}
	})
}

func toFloat(value any) any {
	if n, ok := value.(int64); ok {
		return float64(n)
	}
	return value
}
