package strategy

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // the annotation's format
	"encoding/hex"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "open-cluster-management.io/api/work/v1"
)

// serverSideApply applies the manifest as a field manager. Fields to ignore are applied
// when the object is created; later the ones to ignore when present never are, and the
// ones to ignore when changed only if the manifest changed.
func (o *operation) serverSideApply(ctx context.Context) (Result, error) {
	var config workv1.ServerSideApplyConfig
	if o.Update.ServerSideApply != nil {
		config = *o.Update.ServerSideApply
	}
	body := clean(o.Manifest)
	removeNullTimes(body.Object)
	if len(config.IgnoreFields) == 0 {
		return o.applyAs(ctx, body, config)
	}
	reduced := o.Manifest.DeepCopy()
	removeNullTimes(reduced.Object)
	if err := removeIgnored(ctx, reduced, config.IgnoreFields); err != nil {
		return Result{}, err
	}
	hash := specHash(reduced)
	reduced = clean(reduced)
	annotate(body, hash)
	annotate(reduced, hash)
	// An object that only seems to be missing would lose what is ignored.
	existing, err := o.get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return o.applyAs(ctx, body, config)
	case err != nil:
		return Result{}, err
	case existing.GetAnnotations()[workv1.ManifestConfigSpecHashAnnotationKey] == hash:
		object, err := o.ensureOwner(ctx, existing)
		return Result{Object: object}, err
	}
	return o.applyAs(ctx, reduced, config)
}

// applyAs applies a body, and ensures the owner reference of the request. A new object has
// the reference from the beginning: else it would stay for good if the agent ended before
// it added one, and the work was deleted meanwhile.
func (o *operation) applyAs(ctx context.Context, body *unstructured.Unstructured, config workv1.ServerSideApplyConfig) (Result, error) {
	options := metav1.ApplyOptions{FieldManager: cmp.Or(config.FieldManager, workv1.DefaultFieldManager), Force: config.Force}
	if o.Owned && !o.Settled {
		body.SetOwnerReferences([]metav1.OwnerReference{o.Owner})
	}
	var result Result
	if o.Settled && config.Force { // Another writer may have made what is repaired.
		existing, err := o.get(ctx)
		if err != nil && !apierrors.IsNotFound(err) {
			return Result{}, err
		}
		if err == nil {
			result.Contests = contests(existing, body)
		}
	}
	applied, err := o.applyAdopting(ctx, body, options)
	if err != nil {
		return Result{}, err
	}
	if applied, err = o.ensureOwner(ctx, applied); err != nil {
		return Result{}, err
	}
	result.Object, err = o.disown(ctx, applied, options.FieldManager)
	return result, err
}

// applyAdopting applies a body, once more if the object has fields that work agents wrote
// with another strategy or as another manager.
func (o *operation) applyAdopting(ctx context.Context, body *unstructured.Unstructured, options metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	applied, err := o.apply(ctx, body, options)
	refused := err
	if apierrors.IsConflict(err) {
		applied, err = o.get(ctx)
	}
	if err != nil {
		return nil, err
	}
	adopted, err := o.adopt(ctx, applied, options.FieldManager)
	if err != nil {
		return nil, err
	}
	if adopted != applied {
		applied, refused = o.apply(ctx, body, options)
	}
	if apierrors.IsConflict(refused) {
		return nil, fmt.Errorf("%w: %w", ErrConflict, refused)
	}
	return applied, refused
}

// apply sends a server-side apply.
func (o *operation) apply(ctx context.Context, body *unstructured.Unstructured, options metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	return o.objects.Apply(ctx, body.GetName(), body, options)
}

func annotate(object *unstructured.Unstructured, hash string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[workv1.ManifestConfigSpecHashAnnotationKey] = hash
	object.SetAnnotations(annotations)
}

// specHash is the value that OCM's work agent computes for its annotation
// workv1.ManifestConfigSpecHashAnnotationKey, so that either of them knows what the other
// one applied.
func specHash(object *unstructured.Unstructured) string {
	sum := md5.Sum(fmt.Appendf(nil, "%v", object)) //nolint:gosec // the annotation's format
	return hex.EncodeToString(sum[:])
}

// removeNullTimes removes creation timestamps without a value, which encoders of Go types
// write: with them the API server counts a new generation (kubernetes/kubernetes#67610).
func removeNullTimes(value any) {
	switch value := value.(type) {
	case map[string]any:
		if metadata, ok := value["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
			delete(metadata, "creationTimestamp")
		}
		for _, below := range value {
			removeNullTimes(below)
		}
	case []any:
		for _, below := range value {
			removeNullTimes(below)
		}
	}
}
