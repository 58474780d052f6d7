package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		var last Result
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

// served reports whether a CRD is established. If the API server does not answer, the
// caller retries.
func (a *Applier) served(ctx context.Context, crd *unstructured.Unstructured) Result {
	live, err := a.live(ctx, crd)
	if err != nil {
		return Result{Message: "cannot be read: " + err.Error()}
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

// unused returns an error if a CRD has objects: deleting the CRD would delete them.
func (a *Applier) unused(ctx context.Context, live *unstructured.Unstructured) error {
	objs, err := a.objectsOf(ctx, live)
	if err != nil {
		return fmt.Errorf("list its objects before it is replaced: %w", err)
	}
	if len(objs) > 0 {
		return fmt.Errorf("it cannot be replaced while it has objects, among them %s: delete them first", refOf(&objs[0]))
	}
	return nil
}

// objectsOf returns the first objects of a CRD's kind. The cache never serves lists of
// this type.
func (a *Applier) objectsOf(ctx context.Context, crd *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	var typed apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &typed); err != nil {
		return nil, err
	}
	for _, version := range typed.Spec.Versions {
		if !version.Served {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: typed.Spec.Group, Version: version.Name, Kind: typed.Spec.Names.ListKind})
		err := a.Client.List(ctx, list, client.Limit(1))
		return list.Items, err
	}
	return nil, errors.New("no version of it is served")
}

// ConditionOf returns the condition of a type as the map it is stored as.
func ConditionOf(obj *unstructured.Unstructured, conditionType string) (map[string]any, bool) {
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
