package apply

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// HashAnnotationPrefix and the field manager's name form the annotation with the hash
// of what the manager applied. Apply detects by it, without a request, that the
// desired state has changed.
const HashAnnotationPrefix = "applied.open-cluster-management.io/"

// AppliedBy reports whether an Applier has applied obj as fieldManager, even if
// another product changed the object afterwards.
func AppliedBy(obj client.Object, fieldManager string) bool {
	return obj.GetAnnotations()[HashAnnotationPrefix+fieldManager] != ""
}

// How long, and how often, Apply checks whether the API server serves a kind whose
// CRD was just applied.
const (
	serveTimeout  = 30 * time.Second
	serveInterval = 200 * time.Millisecond
)

// Applier applies objects as one field manager.
type Applier struct {
	// Client reads and writes. Its reads may come from a cache.
	Client client.Client
	// Uncached, if set, reads objects that the cache of Client does not have or has in
	// an old state.
	Uncached client.Reader
	// FieldManager owns the applied fields; conflicts are won by it.
	FieldManager string
	// DryRun is true if Client's writes are dry runs. Apply then does not wait for
	// CRDs, and reports objects whose namespace or kind does not exist yet as created.
	DryRun bool

	// confirmed has the state of each object that needed no write.
	confirmed sync.Map
}

// Apply updates objs to their desired state: CRDs and Namespaces first, waiting until
// the CRDs are established, then the rest in the order given. It stops at the first
// object that fails and returns the changes until then; it is idempotent. The given
// objects are not modified.
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

// one applies one object unless it is up to date.
func (a *Applier) one(ctx context.Context, desired *unstructured.Unstructured) (Change, error) {
	change := Change{Object: refOf(desired), Action: Created}
	live, err := a.live(ctx, desired)
	exists := !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err)
	if exists {
		if err != nil {
			return change, err
		}
		change.Generation = live.GetGeneration()
		if change.Action, err = a.plan(ctx, desired, live); err != nil || change.Action != Configured {
			return change, err
		}
	}
	change.Generation, err = a.write(ctx, desired)
	switch {
	case exists && apierrors.IsInvalid(err):
		return a.replace(ctx, desired, live, err)
	case !exists && a.DryRun && dependencyMissing(err):
		return change, nil
	}
	return change, err
}

// plan returns the action for an object that exists. An object with the hash of
// another desired state is Configured; for one with the same hash the API server
// decides by a dry run whether applying it changes anything, unless it did so before.
func (a *Applier) plan(ctx context.Context, desired, live *unstructured.Unstructured) (Action, error) {
	hash := a.hashAnnotation()
	switch {
	case newerCRD(desired, live):
		return Kept, nil
	case live.GetDeletionTimestamp() != nil:
		return "", &TerminatingError{Object: refOf(live), Finalizers: live.GetFinalizers()}
	case live.GetAnnotations()[hash] != desired.GetAnnotations()[hash]:
		return Configured, nil
	case a.isConfirmed(live):
		return Unchanged, nil
	}
	return a.compare(ctx, desired, live)
}

// staleReads is how often an object is read again that others change meanwhile.
const staleReads = 3

// compare has the API server decide whether applying desired changes live.
func (a *Applier) compare(ctx context.Context, desired, live *unstructured.Unstructured) (Action, error) {
	for range staleReads {
		result := desired.DeepCopy()
		err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result),
			client.FieldOwner(a.FieldManager), client.ForceOwnership, client.DryRunAll)
		if err != nil {
			return "", fmt.Errorf("dry run: %w", err)
		}
		if result, err = a.asRead(result); err != nil {
			return "", err
		}
		if sameContent(live, result) {
			a.confirm(live)
			return Unchanged, nil
		}
		if live.GetResourceVersion() == result.GetResourceVersion() {
			break
		}
		// The object changed since it was read, or the cache is stale.
		if live, err = a.read(ctx, a.reader(), desired); err != nil {
			return Configured, client.IgnoreNotFound(err)
		}
	}
	return Configured, nil
}

// confirm records the state of an object that the API server found up to date.
func (a *Applier) confirm(live *unstructured.Unstructured) {
	a.confirmed.Store(refOf(live), a.state(live))
}

func (a *Applier) isConfirmed(live *unstructured.Unstructured) bool {
	state, ok := a.confirmed.Load(refOf(live))
	return ok && state == a.state(live)
}

// state identifies the stored object and the desired state that was applied to it.
func (a *Applier) state(live *unstructured.Unstructured) string {
	return string(live.GetUID()) + "/" + live.GetResourceVersion() + "/" + live.GetAnnotations()[a.hashAnnotation()]
}

// replace deletes an object that the API server refuses to update, with the error
// cause, although it would create the desired one: an immutable field differs. The
// desired object is written when the old one is gone.
func (a *Applier) replace(ctx context.Context, desired, live *unstructured.Unstructured, cause error) (Change, error) {
	change := Change{Object: refOf(desired), Action: Replaced}
	// The name is checked last, so a valid object already exists.
	err := a.Client.Create(ctx, desired.DeepCopy(), client.DryRunAll)
	if isNamespace(live) || !apierrors.IsAlreadyExists(err) {
		return change, cause
	}
	if isCRD(live) {
		if err := a.unused(ctx, live); err != nil {
			return change, fmt.Errorf("%w; %w", cause, err)
		}
	}
	err = a.Client.Delete(ctx, desired.DeepCopy(),
		client.Preconditions{UID: new(live.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return change, fmt.Errorf("replace: %w", err)
	}
	if a.DryRun {
		return change, nil
	}
	if _, err := a.read(ctx, a.reader(), desired); err == nil {
		return change, &TerminatingError{Object: refOf(live), Finalizers: live.GetFinalizers()}
	} else if !apierrors.IsNotFound(err) {
		return change, fmt.Errorf("replace: %w", err)
	}
	change.Generation, err = a.write(ctx, desired)
	return change, err
}

// write applies the object and returns its generation. A kind whose CRD was
// established a moment ago may not be served by every API server yet; that is waited
// for.
func (a *Applier) write(ctx context.Context, desired *unstructured.Unstructured) (generation int64, err error) {
	var last error
	applied := desired.DeepCopy()
	err = wait.PollUntilContextTimeout(ctx, serveInterval, serveTimeout, true, func(ctx context.Context) (bool, error) {
		last = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied),
			client.FieldOwner(a.FieldManager), client.ForceOwnership)
		if last != nil && !a.DryRun && notServed(last) {
			return false, nil
		}
		return true, last
	})
	if err = cmp.Or(last, err); err != nil {
		return 0, err
	}
	if !a.DryRun {
		a.confirm(applied)
	}
	return applied.GetGeneration(), nil
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
