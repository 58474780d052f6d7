package apply

import (
	"context"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const (
	groupAPIExtensions = "apiextensions.k8s.io"
	kindCRD            = "CustomResourceDefinition"
	conditionTrue      = "True"
)

func isCRD(obj *unstructured.Unstructured) bool {
	gvk := obj.GroupVersionKind()
	return gvk.Group == groupAPIExtensions && gvk.Kind == kindCRD
}

func isNamespace(obj *unstructured.Unstructured) bool {
	gvk := obj.GroupVersionKind()
	return gvk.Group == "" && gvk.Kind == "Namespace"
}

// stages splits objects into what others depend on and the others, each in the
// order given.
func stages(objs []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	var first, rest []*unstructured.Unstructured
	for _, obj := range objs {
		if isCRD(obj) || isNamespace(obj) {
			first = append(first, obj)
		} else {
			rest = append(rest, obj)
		}
	}
	return slices.DeleteFunc([][]*unstructured.Unstructured{first, rest}, func(stage []*unstructured.Unstructured) bool {
		return len(stage) == 0
	})
}

// established waits until the API server serves the kinds of the CRDs in objs.
func (a *Applier) established(ctx context.Context, objs []*unstructured.Unstructured) error {
	for _, obj := range objs {
		if !isCRD(obj) {
			continue
		}
		var last Verdict
		err := wait.PollUntilContextTimeout(ctx, serveInterval, serveTimeout, true, func(ctx context.Context) (bool, error) {
			last = a.served(ctx, obj)
			return last.Done, nil
		})
		if err != nil {
			return fmt.Errorf("wait for %s, which %s: %w", refOf(obj), last.Message, err)
		}
	}
	return nil
}

// served says whether a CRD is established. An API server that does not answer
// is asked again by the caller.
func (a *Applier) served(ctx context.Context, crd *unstructured.Unstructured) Verdict {
	live, err := a.live(ctx, crd)
	if err != nil {
		return Verdict{Message: "cannot be read: " + err.Error()}
	}
	return Established()(live)
}

// newerCRD reports whether live is a CRD that a newer release than desired's
// has written. A version that cannot be read is not newer.
func newerCRD(desired, live *unstructured.Unstructured) bool {
	if !isCRD(desired) {
		return false
	}
	ours, err := version.ParseSemantic(desired.GetAnnotations()[names.AnnotationVersion])
	if err != nil {
		return false
	}
	theirs, err := version.ParseSemantic(live.GetAnnotations()[names.AnnotationVersion])
	return err == nil && ours.LessThan(theirs)
}

// conditionOf returns the condition of a type as the map it is stored as.
func conditionOf(obj *unstructured.Unstructured, conditionType string) (map[string]any, bool) {
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return nil, false
	}
	for _, entry := range conditions {
		if condition, ok := entry.(map[string]any); ok && condition["type"] == conditionType {
			return condition, true
		}
	}
	return nil, false
}

func text(m map[string]any, key string) string {
	s, ok := m[key].(string)
	if !ok {
		return ""
	}
	return s
}

// ignoreNoMatch returns nil for the error of a kind that is not served: then
// there is no object of it either.
func ignoreNoMatch(err error) error {
	if apimeta.IsNoMatchError(err) {
		return nil
	}
	return err
}
