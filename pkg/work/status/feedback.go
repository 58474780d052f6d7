package status

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/util/jsonpath"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Limits is what feedback may report.
type Limits struct {
	// Raw allows objects, lists and several results, as JSON. It is the feature gate
	// RawFeedbackJsonString.
	Raw bool
	// MaxRawLength is how many bytes such JSON may have. The API accepts no more than
	// 1024, whatever is set.
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

// wellKnownPaths are the values that a rule of type WellKnownStatus stands for.
func wellKnownPaths(kind schema.GroupVersionKind) []workv1.JsonPath {
	switch kind {
	case schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}:
		return []workv1.JsonPath{
			{Name: "ReadyReplicas", Path: ".status.readyReplicas"},
			{Name: "Replicas", Path: ".status.replicas"},
			{Name: "AvailableReplicas", Path: ".status.availableReplicas"},
		}
	case schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}:
		return []workv1.JsonPath{
			{Name: "NumberReady", Path: ".status.numberReady"},
			{Name: "DesiredNumberScheduled", Path: ".status.desiredNumberScheduled"},
			{Name: "NumberAvailable", Path: ".status.numberAvailable"},
		}
	case schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}:
		return []workv1.JsonPath{
			{Name: "JobComplete", Path: `.status.conditions[?(@.type=="Complete")].status`},
			{Name: "JobSucceeded", Path: ".status.succeeded"},
		}
	case schema.GroupVersionKind{Version: "v1", Kind: "Pod"}:
		return []workv1.JsonPath{
			{Name: "PodReady", Path: `.status.conditions[?(@.type=="Ready")].status`},
			{Name: "PodPhase", Path: ".status.phase"},
		}
	default:
		return nil
	}
}

// valueOf returns the value of one path, nil if the object has none.
func valueOf(obj *unstructured.Unstructured, path workv1.JsonPath, limits Limits) (*workv1.FieldValue, error) {
	if version := obj.GroupVersionKind().Version; path.Version != "" && path.Version != version {
		return nil, fmt.Errorf("the path is for version %s, the resource is applied as %s", path.Version, version)
	}
	finder := jsonpath.New(path.Name).AllowMissingKeys(true)
	if err := finder.Parse("{" + path.Path + "}"); err != nil {
		return nil, fmt.Errorf("parse path %s: %w", path.Path, err)
	}
	results, err := finder.FindResults(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("follow path %s: %w", path.Path, err)
	}
	if len(results) == 0 || len(results[0]) == 0 {
		return nil, nil
	}
	if len(results) == 1 && len(results[0]) == 1 {
		return fieldValue(results[0][0].Interface(), limits)
	}
	list := make([]any, 0, len(results[0]))
	for _, result := range results[0] {
		list = append(list, result.Interface())
	}
	return fieldValue(list, limits)
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
	if !limits.Raw {
		return nil, errors.New("the value is no integer, string or boolean; the feature gate RawFeedbackJsonString of the agent allows others")
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode the value: %w", err)
	}
	if limit := min(limits.MaxRawLength, maxRawLength); len(encoded) > limit {
		return nil, fmt.Errorf("the value has %d bytes as JSON, more than %d; choose a path to a part of it", len(encoded), limit)
	}
	raw := string(encoded)
	return &workv1.FieldValue{Type: workv1.JsonRaw, JsonRaw: &raw}, nil
}

// feedbackSynced returns the condition StatusFeedbackSynced after Values returned err.
func feedbackSynced(rules []workv1.FeedbackRule, err error) metav1.Condition {
	condition := metav1.Condition{Type: names.ConditionStatusFeedbackSynced, Status: metav1.ConditionTrue, Reason: names.ReasonStatusFeedbackSynced}
	switch {
	case len(rules) == 0:
		condition.Reason = names.ReasonNoStatusFeedback
	case err != nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, names.ReasonStatusFeedbackSyncFailed
		condition.Message = fmt.Sprintf("Sync status feedback failed with error %v", err)
	}
	return bounded(condition)
}
