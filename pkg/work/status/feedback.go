package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Limits are the limits of feedback.
type Limits struct {
	// Raw allows objects, lists and several results, as JSON. It is the feature gate
	// RawFeedbackJsonString.
	Raw bool
	// MaxRawLength is how many bytes such JSON may have. More than 1024, which the API
	// does not accept, means 1024.
	MaxRawLength int
}

// maxRawLength is the API's limit.
const maxRawLength = 1024

// Values returns the values of an object that the rules ask for, in their order. What is
// missing in the object has no value and is no error. With an error the values are
// those that could be read.
// See docs/reference/wire-contract.md#work-feedback.
func Values(obj *unstructured.Unstructured, rules []workv1.FeedbackRule, limits Limits) ([]workv1.FeedbackValue, error) {
	var values []workv1.FeedbackValue
	var errs []error
	seen := map[string]bool{}
	for _, rule := range rules {
		paths, err := pathsOf(obj.GroupVersionKind(), rule)
		if err != nil {
			errs = append(errs, err)
		}
		for _, path := range paths {
			value, err := valueOf(obj, path, limits)
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("%s: %w", path.Name, err))
			case value == nil:
			case seen[path.Name]:
				// Names are the keys of the list: the API server rejects the status.
				errs = append(errs, fmt.Errorf("%s: another value has this name", path.Name))
			default:
				seen[path.Name] = true
				values = append(values, workv1.FeedbackValue{Name: path.Name, Value: *value})
			}
		}
	}
	return values, utilerrors.NewAggregate(errs)
}

func pathsOf(kind schema.GroupVersionKind, rule workv1.FeedbackRule) ([]workv1.JsonPath, error) {
	if rule.Type != workv1.WellKnownStatusType {
		return rule.JsonPaths, nil
	}
	paths := wellKnownPaths(kind)
	if len(paths) == 0 {
		return nil, fmt.Errorf("no well-known status is defined for %s; use a rule of type %s", kind, workv1.JSONPathsType)
	}
	return paths, nil
}

// valueOf returns the value of one path, nil if the object has none.
func valueOf(obj *unstructured.Unstructured, path workv1.JsonPath, limits Limits) (*workv1.FieldValue, error) {
	if version := obj.GroupVersionKind().Version; path.Version != "" && path.Version != version {
		return nil, fmt.Errorf("the path is for version %s, the resource is applied as %s", path.Version, version)
	}
	results, unordered, err := follow(obj, path)
	if err != nil || len(results) == 0 {
		return nil, err
	}
	if len(results) == 1 {
		return fieldValue(results[0].Interface(), limits)
	}
	list, err := encodeAll(results, limits)
	if err != nil {
		return nil, err
	}
	if unordered { // A status that changes is written.
		slices.Sort(list)
	}
	return rawValue("[" + strings.Join(list, ",") + "]"), nil
}

// fieldValue returns the feedback for a value of an unstructured object.
func fieldValue(value any, limits Limits) (*workv1.FieldValue, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case int64:
		return &workv1.FieldValue{Type: workv1.Integer, Integer: &v}, nil
	case string:
		return &workv1.FieldValue{Type: workv1.String, String: &v}, nil
	case bool:
		return &workv1.FieldValue{Type: workv1.Boolean, Boolean: &v}, nil
	}
	encoded, err := encode(value, limits)
	if err != nil {
		return nil, err
	}
	return rawValue(encoded), nil
}

// encodeAll returns several results of one path as the elements of a JSON list. They can
// contain each other, so encoding them all could take any amount of memory.
func encodeAll(results []reflect.Value, limits Limits) ([]string, error) {
	list := make([]string, 0, min(len(results), maxRawLength))
	remaining := limits
	remaining.MaxRawLength = min(limits.MaxRawLength, maxRawLength) - len("[]")
	for _, result := range results {
		encoded, err := encode(result.Interface(), remaining)
		if err != nil {
			return nil, err
		}
		remaining.MaxRawLength -= len(encoded) + len(",")
		list = append(list, encoded)
	}
	return list, nil
}

func encode(value any, limits Limits) (string, error) {
	if !limits.Raw {
		return "", errors.New("the value is no integer, string or boolean; the feature gate RawFeedbackJsonString of the agent allows others")
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode the value: %w", err)
	}
	if len(encoded) > min(limits.MaxRawLength, maxRawLength) {
		return "", errors.New("the value is too long as JSON; choose a path to a part of it")
	}
	return string(encoded), nil
}

func rawValue(encoded string) *workv1.FieldValue {
	return &workv1.FieldValue{Type: workv1.JsonRaw, JsonRaw: &encoded}
}

// Withheld returns the condition StatusFeedbackSynced of an object that must not be
// reported on, and why. Values that were reported before go with it.
func Withheld(err error) metav1.Condition {
	return bounded(metav1.Condition{
		Type: names.ConditionStatusFeedbackSynced, Status: metav1.ConditionFalse, Reason: names.ReasonStatusFeedbackSyncFailed,
		Message: fmt.Sprintf("Sync status feedback failed with error %v", err),
	})
}

// feedbackSynced returns the condition StatusFeedbackSynced after Values returned err.
func feedbackSynced(rules []workv1.FeedbackRule, err error) metav1.Condition {
	condition := metav1.Condition{Type: names.ConditionStatusFeedbackSynced, Status: metav1.ConditionTrue, Reason: names.ReasonStatusFeedbackSynced}
	switch {
	case len(rules) == 0:
		condition.Reason = names.ReasonNoStatusFeedback
	case err != nil:
		return Withheld(err)
	}
	return condition
}
