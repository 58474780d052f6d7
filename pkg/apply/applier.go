package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// HashAnnotationPrefix and the field manager's name form the annotation that
// holds the hash of what the manager applied. It lets Apply notice without a
// request that a field is no longer desired.
const HashAnnotationPrefix = "applied.open-cluster-management.io/"

// AppliedBy reports whether an Applier has applied obj as fieldManager. The mark
// stays when another product changes the object afterwards.
func AppliedBy(obj client.Object, fieldManager string) bool {
	return obj.GetAnnotations()[HashAnnotationPrefix+fieldManager] != ""
}

// How long Apply gives the API server to serve a kind whose CRD it has just
// applied, and how often it looks.
const (
	serveTimeout  = 30 * time.Second
	serveInterval = 200 * time.Millisecond
)

// Applier applies objects as one field manager.
type Applier struct {
	// Client reads and writes. Its reads may come from a cache.
	Client client.Client
	// Uncached, where it is not nil, reads again what the cache of Client does
	// not hold: an object without the label that the cache selects may exist.
	Uncached client.Reader
	// FieldManager owns the applied fields; conflicts are won by it.
	FieldManager string
	// DryRun says that Client's writes change nothing. Apply then does not
	// wait for CRDs, and reports objects that it could not try, because their
	// namespace or kind does not exist yet, as created.
	DryRun bool
}

// Apply brings objs to their desired state: CRDs and Namespaces first, waiting
// until the CRDs are established, then the rest in the order given. It stops
// at the first object that fails and returns what was done until then; a later
// call goes on from there. The objects given are not modified.
func (a *Applier) Apply(ctx context.Context, objs ...client.Object) (ChangeSet, error) {
	desired, err := a.desired(objs)
	if err != nil {
		return nil, err
	}
	var changes ChangeSet
	for _, stage := range stages(desired) {
		for _, obj := range stage {
			change, err := a.one(ctx, obj)
			if err != nil {
				return changes, fmt.Errorf("apply %s: %w", refOf(obj), err)
			}
			changes = append(changes, change)
		}
		if a.DryRun {
			continue
		}
		if err := a.established(ctx, stage); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

// desired turns objs into the form that is applied and compared.
func (a *Applier) desired(objs []client.Object) ([]*unstructured.Unstructured, error) {
	desired := make([]*unstructured.Unstructured, 0, len(objs))
	for _, obj := range objs {
		gvk, err := apiutil.GVKForObject(obj, a.Client.Scheme())
		if err != nil {
			return nil, fmt.Errorf("kind of %s: %w", client.ObjectKeyFromObject(obj), err)
		}
		u, err := normalize(obj, gvk)
		if err != nil {
			return nil, err
		}
		if err := stampHash(u, a.hashAnnotation()); err != nil {
			return nil, err
		}
		desired = append(desired, u)
	}
	return desired, nil
}

func (a *Applier) hashAnnotation() string { return HashAnnotationPrefix + a.FieldManager }

// one applies one object unless the live one is as desired already.
func (a *Applier) one(ctx context.Context, desired *unstructured.Unstructured) (Change, error) {
	change := Change{Object: refOf(desired), Action: Created}
	live, err := a.live(ctx, desired)
	switch {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
	case err != nil:
		return change, err
	default:
		change.Generation = live.GetGeneration()
		action, err := a.judge(ctx, desired, live)
		change.Action = action
		// In a dry run nothing was deleted: the API server would say that the
		// field is immutable.
		if err != nil || action == Unchanged || action == Kept || a.DryRun && action == Replaced {
			return change, err
		}
	}
	applied := desired.DeepCopy()
	if err := a.write(ctx, applied); err != nil {
		if a.DryRun && dependencyMissing(err) {
			return change, nil
		}
		return change, err
	}
	change.Generation = applied.GetGeneration()
	return change, nil
}

// judge says what has to happen to an object that exists. An object of which a
// field would have to change that Kubernetes holds immutable is deleted first.
func (a *Applier) judge(ctx context.Context, desired, live *unstructured.Unstructured) (Action, error) {
	if newerCRD(desired, live) {
		return Kept, nil
	}
	if live.GetDeletionTimestamp() != nil {
		return "", &TerminatingError{Object: refOf(live), Finalizers: live.GetFinalizers()}
	}
	if inSync(desired, live, a.hashAnnotation()) {
		return Unchanged, nil
	}
	if !immutableChange(desired, live) {
		return Configured, nil
	}
	if isCRD(desired) {
		return Replaced, a.replaceCRD(ctx, live)
	}
	uid := live.GetUID()
	err := a.Client.Delete(ctx, desired.DeepCopy(),
		client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("replace: %w", err)
	}
	return Replaced, nil
}

// live reads the object as it is, from the cache where that holds it.
func (a *Applier) live(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := a.read(ctx, a.Client, desired)
	if apierrors.IsNotFound(err) && a.Uncached != nil {
		return a.read(ctx, a.Uncached, desired)
	}
	return live, err
}

// read reads kinds of the scheme as their Go types, so that a manager's cache
// serves the read from the informer that the controllers have anyway.
func (a *Applier) read(ctx context.Context, reader client.Reader, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk, key := desired.GroupVersionKind(), client.ObjectKeyFromObject(desired)
	if !a.Client.Scheme().Recognizes(gvk) {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(gvk)
		return live, reader.Get(ctx, key, live)
	}
	typed, err := a.typed(gvk)
	if err != nil {
		return nil, err
	}
	if err := reader.Get(ctx, key, typed); err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	live := &unstructured.Unstructured{Object: content}
	live.SetGroupVersionKind(gvk)
	return live, nil
}

func (a *Applier) typed(gvk schema.GroupVersionKind) (client.Object, error) {
	made, err := a.Client.Scheme().New(gvk)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", gvk, err)
	}
	obj, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no API object", gvk)
	}
	return obj, nil
}

// write applies the object. A kind whose CRD was established a moment ago may
// not be served by every API server yet, so that is waited for.
func (a *Applier) write(ctx context.Context, obj *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, serveInterval, serveTimeout, true, func(ctx context.Context) (bool, error) {
		last = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj),
			client.FieldOwner(a.FieldManager), client.ForceOwnership)
		if last != nil && !a.DryRun && notServed(last) {
			return false, nil
		}
		return true, last
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// notServed reports whether an API server does not know the kind at all, as
// opposed to the object or its namespace.
func notServed(err error) bool {
	if apimeta.IsNoMatchError(err) {
		return true
	}
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// dependencyMissing reports whether a dry run failed only because what the
// object lives in was not really created.
func dependencyMissing(err error) bool { return notServed(err) || apierrors.IsNotFound(err) }

func refOf(obj *unstructured.Unstructured) Ref {
	return Ref{Kind: obj.GroupVersionKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Objects returns list in the form that Apply and Delete take.
func Objects[T client.Object](list []T) []client.Object {
	objs := make([]client.Object, len(list))
	for i, obj := range list {
		objs[i] = obj
	}
	return objs
}
