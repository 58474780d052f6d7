package strategy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// maxExpression is the largest length of a path or expression, in bytes. Those of real
// fields are far shorter.
const maxExpression = 1024

// removeIgnored removes the fields that are ignored while the object exists. The object
// keeps its kind, namespace and name: the permission to write it was given for these.
func removeIgnored(ctx context.Context, object *unstructured.Unstructured, fields []workv1.IgnoreField) error {
	identity := identityOf(object)
	for _, field := range fields {
		if field.Condition == workv1.IgnoreFieldsConditionOnSpokeChange {
			continue // They are part of the hash.
		}
		for _, kind := range []struct {
			paths  []string
			remove func(context.Context, *unstructured.Unstructured, string) error
		}{{field.JSONPaths, removeJSONPath}, {field.JSONPointers, removeJSONPointer}, {field.JQPathExpressions, removeJQ}} {
			for _, path := range kind.paths {
				err := errTooLong
				if len(path) <= maxExpression {
					err = kind.remove(ctx, object, path)
				}
				if err == nil && identityOf(object) != identity {
					err = errIdentity
				}
				if err != nil {
					return &status.IgnoreFieldsError{Err: fmt.Errorf("the field to ignore %q: %w", path, err)}
				}
			}
		}
	}
	return nil
}

var (
	errTooLong  = fmt.Errorf("it is longer than %d bytes; shorten it, or split it into several", maxExpression)
	errIdentity = errors.New("apiVersion, kind, namespace and name cannot be ignored")
)

// identity is the apiVersion, kind, namespace and name of an object.
type identity struct{ apiVersion, kind, namespace, name string }

func identityOf(o *unstructured.Unstructured) identity {
	return identity{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}
}

// removeJSONPath removes the last key of a path from every map that the rest of the path
// finds. Elements of lists stay: a shorter list would be applied as one.
func removeJSONPath(_ context.Context, object *unstructured.Unstructured, path string) error {
	parents, key, ok := cutLast(path, ".")
	if !ok || key == "" {
		return errors.New("it is no JSONPath of a field, such as .spec.replicas")
	}
	found, err := status.Follow(object, workv1.JsonPath{Name: "ignoreFields", Path: parents})
	if err != nil {
		return err
	}
	for _, value := range found {
		if parent, ok := reflect.TypeAssert[map[string]any](value); ok {
			delete(parent, key)
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
