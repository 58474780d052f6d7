package upstream

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // the annotation's format
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"
)

// specHashAnnotation has the hash of what was applied with fields to ignore.
const specHashAnnotation = "open-cluster-management.io/config-spec-hash"

// applyOne applies a manifest by its update strategy.
func (a *Agent) applyOne(ctx context.Context, meta workv1.ManifestResourceMeta, required *unstructured.Unstructured, owner metav1.OwnerReference, config workv1.ManifestConfigOption) error {
	live, err := a.read(ctx, meta)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if apierrors.IsNotFound(err) {
		live = nil
	}
	if config.UpdateStrategy != nil && config.UpdateStrategy.Type == workv1.UpdateStrategyTypeServerSideApply {
		return a.serverSideApply(ctx, live, required, owner, config.UpdateStrategy.ServerSideApply)
	}
	return a.update(ctx, live, required, owner)
}

// update creates an object, or replaces what is not metadata. An object that it left as
// it is now, for the same manifest, is not written again.
func (a *Agent) update(ctx context.Context, live, required *unstructured.Unstructured, owner metav1.OwnerReference) error {
	if a.left == nil {
		a.left = map[types.UID]string{}
	}
	if live == nil {
		required.SetOwnerReferences([]metav1.OwnerReference{owner})
		a.Writes++
		return a.Managed.Create(ctx, required)
	}
	wanted := hashOf(required)
	if a.left[live.GetUID()] == wanted+live.GetResourceVersion() {
		return nil
	}
	required.SetLabels(added(live.GetLabels(), required.GetLabels()))
	required.SetAnnotations(added(live.GetAnnotations(), required.GetAnnotations()))
	required.SetOwnerReferences(owners(live, owner))
	required.SetFinalizers(live.GetFinalizers())
	required.SetResourceVersion(live.GetResourceVersion())
	if !same(live, required) {
		a.Writes++
		if err := a.Managed.Update(ctx, required); err != nil {
			return err
		}
		live = required
	}
	a.left[live.GetUID()] = wanted + live.GetResourceVersion()
	return nil
}

// added adds labels or annotations to those that exist.
func added(live, required map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, live)
	maps.Copy(all, required)
	return all
}

func owners(live *unstructured.Unstructured, owner metav1.OwnerReference) []metav1.OwnerReference {
	if slices.ContainsFunc(live.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) {
		return live.GetOwnerReferences()
	}
	return append(live.GetOwnerReferences(), owner)
}

// same reports whether two objects differ in nothing but what others set.
func same(live, required *unstructured.Unstructured) bool {
	content := func(o *unstructured.Unstructured) map[string]any {
		c := maps.Clone(o.Object)
		delete(c, "metadata")
		delete(c, "status")
		return c
	}
	return equality.Semantic.DeepEqual(content(live), content(required)) &&
		maps.Equal(live.GetLabels(), required.GetLabels()) && maps.Equal(live.GetAnnotations(), required.GetAnnotations()) &&
		equality.Semantic.DeepEqual(live.GetOwnerReferences(), required.GetOwnerReferences())
}

// serverSideApply applies an object, and then sets its owner.
func (a *Agent) serverSideApply(ctx context.Context, live, required *unstructured.Unstructured, owner metav1.OwnerReference, config *workv1.ServerSideApplyConfig) error {
	if config == nil {
		config = &workv1.ServerSideApplyConfig{}
	}
	if created := required.GetCreationTimestamp(); created.IsZero() { // Encoders of Go types write null.
		unstructured.RemoveNestedField(required.Object, "metadata", "creationTimestamp")
	}
	body := required
	if len(config.IgnoreFields) > 0 {
		if body = bodyFor(live, required, config.IgnoreFields); body == nil {
			return a.own(ctx, live, owner)
		}
	}
	data, err := body.MarshalJSON()
	if err != nil {
		return err
	}
	if live == nil { // Else the server finds out whether it changes something.
		a.Writes++
	}
	options := []client.PatchOption{client.FieldOwner(cmp.Or(config.FieldManager, "work-agent"))}
	if config.Force {
		options = append(options, client.ForceOwnership)
	}
	if err := a.Managed.Patch(ctx, body, client.RawPatch(types.ApplyPatchType, data), options...); err != nil {
		return err
	}
	return a.own(ctx, body, owner)
}

// bodyFor returns what is applied when there are fields to ignore, nil for nothing.
func bodyFor(live, required *unstructured.Unstructured, fields []workv1.IgnoreField) *unstructured.Unstructured {
	body := withoutIgnored(required, fields)
	hash := hashOf(body)
	switch {
	case live == nil:
		body = required
	case live.GetAnnotations()[specHashAnnotation] == hash:
		return nil
	}
	body.SetAnnotations(added(body.GetAnnotations(), map[string]string{specHashAnnotation: hash}))
	return body
}

// withoutIgnored returns an object without the fields that are ignored while it exists.
func withoutIgnored(required *unstructured.Unstructured, fields []workv1.IgnoreField) *unstructured.Unstructured {
	reduced := required.DeepCopy()
	for _, field := range fields {
		if field.Condition == workv1.IgnoreFieldsConditionOnSpokeChange {
			continue
		}
		for _, pointer := range field.JSONPointers {
			unstructured.RemoveNestedField(reduced.Object, strings.Split(strings.TrimPrefix(pointer, "/"), "/")...)
		}
	}
	return reduced
}

// hashOf is the hash of the text that Go prints for an object.
func hashOf(object *unstructured.Unstructured) string {
	sum := md5.Sum([]byte(fmt.Sprintf("%v", object))) //nolint:gosec // the annotation's format
	return hex.EncodeToString(sum[:])
}

// own gives an object its owner.
func (a *Agent) own(ctx context.Context, live *unstructured.Unstructured, owner metav1.OwnerReference) error {
	wanted := owners(live, owner)
	if equality.Semantic.DeepEqual(live.GetOwnerReferences(), wanted) {
		return nil
	}
	a.Writes++
	return a.Managed.Patch(ctx, live, mergePatch(live, map[string]any{"metadata": map[string]any{"ownerReferences": wanted}}))
}

// observe reports whether the objects exist, and the feedback of Deployments.
func (a *Agent) observe(ctx context.Context, work *workv1.ManifestWork) error {
	status := work.Status.DeepCopy()
	missing := 0
	for i := range status.ResourceStatus.Manifests {
		entry := &status.ResourceStatus.Manifests[i]
		if live, err := a.read(ctx, entry.ResourceMeta); err == nil {
			observeOne(entry, live, configOf(work, entry.ResourceMeta).FeedbackRules)
			continue
		}
		missing++
		apimeta.SetStatusCondition(&entry.Conditions, metav1.Condition{
			Type: "Available", Status: metav1.ConditionFalse, Reason: "ResourceNotAvailable", Message: "Resource is not available",
		})
	}
	condition := metav1.Condition{
		Type: "Available", Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: "ResourcesAvailable", Message: "All resources are available",
	}
	if missing > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, "ResourcesNotAvailable"
		condition.Message = fmt.Sprintf("%d of %d resources are not available", missing, len(status.ResourceStatus.Manifests))
	}
	apimeta.SetStatusCondition(&status.Conditions, condition)
	return a.report(ctx, work, status)
}

// observeOne reports about an object that exists.
func observeOne(entry *workv1.ManifestCondition, live *unstructured.Unstructured, rules []workv1.FeedbackRule) {
	apimeta.SetStatusCondition(&entry.Conditions, metav1.Condition{
		Type: "Available", Status: metav1.ConditionTrue, Reason: "ResourceAvailable", Message: "Resource is available",
	})
	feedback := metav1.Condition{Type: "StatusFeedbackSynced", Status: metav1.ConditionTrue, Reason: "NoStatusFeedbackSynced"}
	var values []workv1.FeedbackValue
	if len(rules) > 0 {
		feedback.Reason = "StatusFeedbackSynced"
		values = deploymentValues(live)
	}
	if !equality.Semantic.DeepEqual(entry.StatusFeedbacks.Values, values) {
		apimeta.RemoveStatusCondition(&entry.Conditions, feedback.Type)
	}
	apimeta.SetStatusCondition(&entry.Conditions, feedback)
	entry.StatusFeedbacks.Values = values
}

// deploymentValues are the well-known values of a Deployment.
func deploymentValues(live *unstructured.Unstructured) []workv1.FeedbackValue {
	var values []workv1.FeedbackValue
	for _, v := range []struct{ name, field string }{
		{"ReadyReplicas", "readyReplicas"}, {"Replicas", "replicas"}, {"AvailableReplicas", "availableReplicas"},
	} {
		n, ok, _ := unstructured.NestedInt64(live.Object, "status", v.field)
		if ok {
			values = append(values, workv1.FeedbackValue{Name: v.name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &n}})
		}
	}
	return values
}
