package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Action is the change of one object.
type Action string

// The actions.
const (
	// Created says that the object did not exist, as far as the reader can see.
	Created Action = "created"
	// Configured says that the object existed and was changed.
	Configured Action = "configured"
	// Replaced says that the object was deleted and made again, because a field
	// differed that the API server does not change.
	Replaced Action = "replaced"
	// Unchanged says that nothing was written.
	Unchanged Action = "unchanged"
	// Kept says that the object was written by a newer release and left alone.
	Kept Action = "kept"
	// Deleted says that the object is gone.
	Deleted Action = "deleted"
	// Deleting says that the object was deleted and is still there, because
	// its finalizers or its content have not been dealt with.
	Deleting Action = "deleting"
)

// Ref names one object.
type Ref struct {
	// Kind is the group, version and kind.
	Kind schema.GroupVersionKind
	// Namespace is empty for cluster-scoped objects.
	Namespace string
	// Name is the object's name.
	Name string
}

// String returns the form that kubectl prints: kind.group/name, with the
// namespace in front of the name where there is one.
func (r Ref) String() string {
	kind := strings.ToLower(r.Kind.Kind)
	if r.Kind.Group != "" {
		kind += "." + r.Kind.Group
	}
	if r.Namespace != "" {
		return fmt.Sprintf("%s %s/%s", kind, r.Namespace, r.Name)
	}
	return kind + "/" + r.Name
}

// Change is the outcome for one object.
type Change struct {
	// Object names it.
	Object Ref
	// Action is the action taken.
	Action Action
	// Generation is the object's metadata.generation afterwards, 0 if unknown.
	Generation int64
}

// ChangeSet is the outcome for each object, in the order of the work.
type ChangeSet []Change

// Changed reports whether any object was created, configured or deleted.
func (c ChangeSet) Changed() bool {
	return slices.ContainsFunc(c, func(change Change) bool {
		return change.Action != Unchanged && change.Action != Kept
	})
}

// With returns the objects that action happened to.
func (c ChangeSet) With(action Action) []Ref {
	var refs []Ref
	for _, change := range c {
		if change.Action == action {
			refs = append(refs, change.Object)
		}
	}
	return refs
}
