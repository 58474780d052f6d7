package strategy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/gojq"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// jqTimeout bounds an expression, which may loop.
const jqTimeout = time.Second

// removeIgnored removes the fields that are ignored while the object exists.
func removeIgnored(ctx context.Context, object *unstructured.Unstructured, fields []workv1.IgnoreField) error {
	for _, field := range fields {
		if field.Condition == workv1.IgnoreFieldsConditionOnSpokeChange {
			continue // They are part of the hash.
		}
		for _, kind := range []struct {
			paths  []string
			remove func(context.Context, *unstructured.Unstructured, string) error
		}{{field.JSONPaths, removeJSONPath}, {field.JSONPointers, removeJSONPointer}, {field.JQPathExpressions, removeJQ}} {
			for _, path := range kind.paths {
				if err := kind.remove(ctx, object, path); err != nil {
					return &status.IgnoreFieldsError{Err: fmt.Errorf("the field to ignore %q: %w", path, err)}
				}
			}
		}
	}
	return nil
}

// removeJSONPath removes the last key of a path from every map that the rest of the path
// finds. Elements of lists stay: a shorter list would be applied as one.
func removeJSONPath(_ context.Context, object *unstructured.Unstructured, path string) error {
	parents, key, ok := cutLast(path, ".")
	if !ok || key == "" {
		return errors.New("it is no JSONPath of a field, such as .spec.replicas")
	}
	finder := jsonpath.New("ignoreFields").AllowMissingKeys(true)
	if err := finder.Parse("{" + parents + "}"); err != nil {
		return err
	}
	found, err := finder.FindResults(object.Object)
	if err != nil {
		return err
	}
	for _, values := range found {
		for _, value := range values {
			if parent, ok := reflect.TypeAssert[map[string]any](value); ok {
				delete(parent, key)
			}
		}
	}
	return nil
}

func cutLast(s, separator string) (before, after string, found bool) {
	at := strings.LastIndex(s, separator)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(separator):], true
}

// removeJSONPointer removes what an RFC 6901 pointer points to, if it exists.
func removeJSONPointer(_ context.Context, object *unstructured.Unstructured, pointer string) error {
	parents, last, ok := cutLast(pointer, "/")
	if !ok || parents != "" && parents[0] != '/' {
		return errors.New("it is no JSON Pointer of a field, such as /spec/replicas")
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~").Replace
	tokens := strings.Split(parents, "/")[1:]
	if parents == "" {
		tokens = nil
	}
	removeAt(object.Object, tokens, unescape(last), unescape)
	return nil
}

// removeAt removes a key below a value and returns the value without it.
func removeAt(value any, tokens []string, last string, unescape func(string) string) any {
	token := last
	if len(tokens) > 0 {
		token = unescape(tokens[0])
	}
	switch value := value.(type) {
	case map[string]any:
		below, ok := value[token]
		switch {
		case len(tokens) == 0:
			delete(value, token)
		case ok:
			value[token] = removeAt(below, tokens[1:], last, unescape)
		}
		return value
	case []any:
		at, err := strconv.Atoi(token)
		if err != nil || at < 0 || at >= len(value) {
			return value
		}
		if len(tokens) == 0 {
			return append(value[:at:at], value[at+1:]...)
		}
		value[at] = removeAt(value[at], tokens[1:], last, unescape)
		return value
	}
	return value
}

// removeJQ removes what a jq path expression selects.
func removeJQ(ctx context.Context, object *unstructured.Unstructured, expression string) error {
	query, err := gojq.Parse("del(" + expression + ")")
	if err != nil {
		return err
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, jqTimeout)
	defer cancel()
	results := code.RunWithContext(ctx, forJQ(object.Object))
	result, ok := results.Next()
	if err, failed := result.(error); failed {
		return err
	}
	if _, more := results.Next(); !ok || more {
		return errors.New("the expression does not select fields of one object")
	}
	reduced, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return object.UnmarshalJSON(reduced)
}

// forJQ returns a copy of a value in the types that gojq knows.
func forJQ(value any) any {
	switch value := value.(type) {
	case map[string]any:
		c := make(map[string]any, len(value))
		for key, below := range value {
			c[key] = forJQ(below)
		}
		return c
	case []any:
		c := make([]any, len(value))
		for i, below := range value {
			c[i] = forJQ(below)
		}
		return c
	case int64:
		return int(value)
	}
	return value
}
