package status

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"

	workv1 "open-cluster-management.io/api/work/v1"
)

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

// maxPathLength is how many bytes a path may have. Those that users write have less than
// a hundred.
const maxPathLength = 1024

// Follow returns what a path of the user leads to in an object, as a part of it, and nothing
// if that is missing. It is an error if the path is more than one, or could lead to a part
// many times.
func Follow(obj *unstructured.Unstructured, path workv1.JsonPath) ([]reflect.Value, error) {
	results, _, err := follow(obj, path)
	return results, err
}

// follow returns what a path leads to in an object, nothing if that is missing. Results
// of a path that is unordered come in another order each time.
func follow(obj *unstructured.Unstructured, path workv1.JsonPath) (results []reflect.Value, unordered bool, err error) {
	if len(path.Path) > maxPathLength {
		return nil, false, fmt.Errorf("the path has %d bytes, more than %d", len(path.Path), maxPathLength)
	}
	template := "{" + path.Path + "}"
	parsed, err := jsonpath.Parse(path.Name, template)
	if err != nil {
		return nil, false, fmt.Errorf("parse path %s: %w", path.Path, err)
	}
	shape := shapeOf(parsed.Root)
	if len(parsed.Root.Nodes) != 1 || shape.branches > 1 {
		return nil, false, fmt.Errorf("path %s is too complex; use one path with at most one .. or union", path.Path)
	}
	finder := jsonpath.New(path.Name).AllowMissingKeys(true)
	if err := finder.Parse(template); err != nil {
		return nil, false, fmt.Errorf("parse path %s: %w", path.Path, err)
	}
	lists, err := finder.FindResults(obj.Object)
	if err != nil {
		return nil, false, fmt.Errorf("follow path %s: %w", path.Path, err)
	}
	if len(lists) == 0 {
		return nil, false, nil
	}
	return lists[0], shape.unordered, nil
}

// shape is the structure of a path.
type shape struct {
	// branches counts the parts that can lead to one value several times. With two of
	// them the size of the object does not limit the results, and neither does
	// client-go.
	branches int
	// unordered is set if a part follows all fields of an object.
	unordered bool
}

func shapeOf(nodes ...jsonpath.Node) shape {
	var s shape
	for _, node := range nodes {
		var inner shape
		switch n := node.(type) {
		case *jsonpath.ListNode:
			inner = shapeOf(n.Nodes...)
		case *jsonpath.FilterNode:
			inner = shapeOf(n.Left, n.Right)
		case *jsonpath.UnionNode:
			for _, list := range n.Nodes {
				inner.add(shapeOf(list))
			}
			inner.branches++
		case *jsonpath.RecursiveNode:
			inner = shape{branches: 1, unordered: true}
		case *jsonpath.WildcardNode:
			inner.unordered = true
		}
		s.add(inner)
	}
	return s
}

func (s *shape) add(part shape) {
	s.branches += part.branches
	s.unordered = s.unordered || part.unordered
}
