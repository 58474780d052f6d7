package strategy

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	workv1 "open-cluster-management.io/api/work/v1"
)

// attempts is how often a request is built again because another writer was faster.
const attempts = 3

// Request is one manifest to apply.
type Request struct {
	Resource schema.GroupVersionResource
	// Manifest is not changed. Its namespace is empty for a cluster-scoped resource.
	Manifest *unstructured.Unstructured
	// Owner is the reference that the object must have if Owned, else must not have.
	Owner metav1.OwnerReference
	Owned bool
	// Update is the strategy of the manifest.
	Update workv1.UpdateStrategy
	// Missing is true if the object probably does not exist: then it is not read first.
	Missing bool
	// Settled is true if this manifest was applied before, so that only what others
	// wrote can differ.
	Settled bool
}

// Applier applies manifests.
type Applier struct {
	Client dynamic.Interface
}

// ErrConflict is wrapped by the error of a server-side apply that would take fields from
// another manager. Only a change of either side resolves it.
var ErrConflict = errors.New("conflict")

// Result is the outcome of a request.
type Result struct {
	// Object is the object as it is then.
	Object *unstructured.Unstructured
	// Contests are the fields that had another writer's values before, if the request has
	// given them those of the manifest.
	Contests []Contest
}

// Apply applies a manifest. With the strategy ReadOnly it only reads the object.
func (a *Applier) Apply(ctx context.Context, r Request) (Result, error) {
	o := operation{Request: r, objects: a.objects(r)}
	run := o.update
	switch r.Update.Type {
	case workv1.UpdateStrategyTypeReadOnly:
		object, err := o.get(ctx)
		return Result{Object: object}, err
	case workv1.UpdateStrategyTypeCreateOnly:
		run = o.createOnly
	case workv1.UpdateStrategyTypeServerSideApply:
		run = o.serverSideApply
	case workv1.UpdateStrategyTypeUpdate, "":
	default:
		return Result{}, fmt.Errorf("update strategy %q is unknown", r.Update.Type)
	}
	var result Result
	var err error
	for range attempts {
		result, err = run(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) || errors.Is(err, ErrConflict) {
			return result, err
		}
		o.Missing = false // What another writer created or changed is read.
	}
	return result, err
}

// Release removes the owner reference from an object, if it has it.
func (a *Applier) Release(ctx context.Context, r Request) error {
	o := operation{Request: r, objects: a.objects(r)}
	o.Owned = false
	var err error
	for range attempts {
		existing, errGet := o.get(ctx)
		if Gone(errGet) {
			return nil
		}
		if errGet != nil {
			return errGet
		}
		if _, err = o.ensureOwner(ctx, existing); !apierrors.IsConflict(err) {
			break
		}
	}
	if Gone(err) {
		return nil
	}
	return err
}

// Unserved reports whether an answer says that a version of a resource is not served, and
// nothing of the object: the API server has no handler that knows its name.
func Unserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// Gone reports whether an answer says that an object does not exist.
func Gone(err error) bool { return apierrors.IsNotFound(err) && !Unserved(err) }

func (a *Applier) objects(r Request) dynamic.ResourceInterface {
	if namespace := r.Manifest.GetNamespace(); namespace != "" {
		return a.Client.Resource(r.Resource).Namespace(namespace)
	}
	return a.Client.Resource(r.Resource)
}

// operation is a request with the client of its objects.
type operation struct {
	Request

	objects dynamic.ResourceInterface
}

func (o *operation) get(ctx context.Context) (*unstructured.Unstructured, error) {
	return o.objects.Get(ctx, o.Manifest.GetName(), metav1.GetOptions{})
}

// createOnly creates the object, and leaves an existing one alone but for its owners.
func (o *operation) createOnly(ctx context.Context) (Result, error) {
	existing, err := o.createOrGet(ctx)
	if err != nil {
		return Result{}, err
	}
	object, err := o.ensureOwner(ctx, existing)
	return Result{Object: object}, err
}

// createOrGet creates the object if it is missing.
func (o *operation) createOrGet(ctx context.Context) (*unstructured.Unstructured, error) {
	if o.Missing {
		return o.create(ctx)
	}
	existing, err := o.get(ctx)
	if apierrors.IsNotFound(err) {
		return o.create(ctx)
	}
	return existing, err
}

func (o *operation) create(ctx context.Context) (*unstructured.Unstructured, error) {
	body := clean(o.Manifest)
	body.SetOwnerReferences(o.owners(nil))
	return o.objects.Create(ctx, body, metav1.CreateOptions{FieldManager: workv1.DefaultFieldManager})
}

// clean returns a copy of a manifest without what only an API server may say.
func clean(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	c := manifest.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink", "ownerReferences"} {
		unstructured.RemoveNestedField(c.Object, "metadata", field)
	}
	return c
}
