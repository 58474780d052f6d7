package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Agent sends the requests of OCM's work agent on a test's command: it shares nothing
// with our code but names. It implements the update strategies Update and
// ServerSideApply, JSON Pointers for fields to ignore, and the well-known status of
// Deployments for feedback.
type Agent struct {
	// Hub and Managed act as the agent does on the hub and on the managed cluster.
	Hub, Managed client.Client
	// Cluster is its namespace on the hub.
	Cluster string
	// HubHash and AgentID are in its AppliedManifestWorks.
	HubHash, AgentID string
	// Puts has it update what OCM patches since v0.9.
	Puts bool
	// Writes counts the requests that may change something.
	Writes int

	// left has the manifests and the resource versions of its last updates, by UID.
	left map[types.UID]string
}

// Sync does once what its controllers do about a work.
func (a *Agent) Sync(ctx context.Context, name string) error {
	var works workv1.ManifestWorkList
	if err := a.Hub.List(ctx, &works, client.InNamespace(a.Cluster)); err != nil {
		return err
	}
	at := slices.IndexFunc(works.Items, func(w workv1.ManifestWork) bool { return w.Name == name })
	if at < 0 {
		return nil
	}
	work := &works.Items[at]
	if !work.DeletionTimestamp.IsZero() {
		return a.finalize(ctx, work)
	}
	if !slices.Contains(work.Finalizers, names.FinalizerManifestWork) {
		return a.setFinalizers(ctx, a.Hub, work, append(work.Finalizers, names.FinalizerManifestWork))
	}
	applied, err := a.ensureApplied(ctx, work)
	if err != nil {
		return err
	}
	if err := a.apply(ctx, work, applied); err != nil {
		return err
	}
	if err := a.record(ctx, work, applied); err != nil {
		return err
	}
	return a.observe(ctx, work)
}

// ensureApplied returns the AppliedManifestWork of a work.
func (a *Agent) ensureApplied(ctx context.Context, work *workv1.ManifestWork) (*workv1.AppliedManifestWork, error) {
	applied := &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Name: a.HubHash + "-" + work.Name, Labels: work.Labels,
			Finalizers: []string{names.FinalizerAppliedManifestWork},
		},
		Spec: workv1.AppliedManifestWorkSpec{HubHash: a.HubHash, AgentID: a.AgentID, ManifestWorkName: work.Name},
	}
	wanted := applied.Spec
	err := a.Managed.Get(ctx, client.ObjectKeyFromObject(applied), applied)
	switch {
	case apierrors.IsNotFound(err):
		a.Writes++
		return applied, a.Managed.Create(ctx, applied)
	case err != nil || applied.Spec == wanted:
		return applied, err
	}
	a.Writes++
	return applied, a.Managed.Patch(ctx, applied, mergePatch(applied, map[string]any{"spec": wanted}))
}

// apply applies the manifests and reports that.
func (a *Agent) apply(ctx context.Context, work *workv1.ManifestWork, applied *workv1.AppliedManifestWork) error {
	owner := metav1.OwnerReference{
		APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", Name: applied.Name, UID: applied.UID,
	}
	status := work.Status.DeepCopy()
	manifests := make([]workv1.ManifestCondition, len(work.Spec.Workload.Manifests))
	condition := metav1.Condition{
		Type: "Applied", Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: "AppliedManifestWorkComplete", Message: "Apply manifest work complete",
	}
	for i := range manifests {
		manifests[i] = a.applyManifest(ctx, work, i, owner)
		if !apimeta.IsStatusConditionTrue(manifests[i].Conditions, "Applied") {
			condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "AppliedManifestWorkFailed", "Failed to apply manifest work"
		}
	}
	status.ResourceStatus.Manifests = manifests
	apimeta.SetStatusCondition(&status.Conditions, condition)
	return a.report(ctx, work, status)
}

// applyManifest applies one manifest and returns what the status says about it.
func (a *Agent) applyManifest(ctx context.Context, work *workv1.ManifestWork, ordinal int, owner metav1.OwnerReference) workv1.ManifestCondition {
	var meta workv1.ManifestResourceMeta
	required := &unstructured.Unstructured{}
	err := required.UnmarshalJSON(work.Spec.Workload.Manifests[ordinal].Raw)
	if err == nil {
		meta, err = a.meta(ordinal, required)
	}
	if err == nil {
		err = a.applyOne(ctx, meta, required, owner, configOf(work, meta))
	}
	condition := metav1.Condition{
		Type: "Applied", Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: "AppliedManifestComplete", Message: "Apply manifest complete",
	}
	if err != nil {
		condition.Status, condition.Reason = metav1.ConditionFalse, "AppliedManifestFailed"
		condition.Message = fmt.Sprintf("Failed to apply manifest: %v", err)
	}
	entry := entryOf(&work.Status, meta)
	entry.Conditions = slices.Clone(entry.Conditions)
	apimeta.SetStatusCondition(&entry.Conditions, condition)
	return entry
}

// meta is how the status of a work refers to a manifest.
func (a *Agent) meta(ordinal int, required *unstructured.Unstructured) (workv1.ManifestResourceMeta, error) {
	kind := required.GroupVersionKind()
	meta := workv1.ManifestResourceMeta{
		Ordinal: int32(ordinal), Group: kind.Group, Version: kind.Version, Kind: kind.Kind, //nolint:gosec // few
		Namespace: required.GetNamespace(), Name: required.GetName(),
	}
	mapping, err := a.Managed.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return meta, err
	}
	meta.Resource = mapping.Resource.Resource
	return meta, nil
}

// entryOf returns what the status of a work has about a manifest.
func entryOf(status *workv1.ManifestWorkStatus, meta workv1.ManifestResourceMeta) workv1.ManifestCondition {
	for _, entry := range status.ResourceStatus.Manifests {
		before := entry.ResourceMeta
		before.Ordinal = meta.Ordinal
		if before == meta {
			entry.ResourceMeta = meta
			return entry
		}
	}
	return workv1.ManifestCondition{ResourceMeta: meta, Conditions: []metav1.Condition{}}
}

// configOf returns the options of a manifest, empty if there are none.
func configOf(work *workv1.ManifestWork, meta workv1.ManifestResourceMeta) workv1.ManifestConfigOption {
	id := workv1.ResourceIdentifier{Group: meta.Group, Resource: meta.Resource, Name: meta.Name, Namespace: meta.Namespace}
	for _, config := range work.Spec.ManifestConfigs {
		if config.ResourceIdentifier == id {
			return config
		}
	}
	return workv1.ManifestConfigOption{}
}

// record records in the AppliedManifestWork what was applied.
func (a *Agent) record(ctx context.Context, work *workv1.ManifestWork, applied *workv1.AppliedManifestWork) error {
	var resources []workv1.AppliedManifestResourceMeta
	for _, entry := range work.Status.ResourceStatus.Manifests {
		live, err := a.read(ctx, entry.ResourceMeta)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		m := entry.ResourceMeta
		resources = append(resources, workv1.AppliedManifestResourceMeta{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: m.Group, Resource: m.Resource, Namespace: m.Namespace, Name: m.Name},
			Version:            m.Version, UID: string(live.GetUID()),
		})
	}
	// By group, version, resource, namespace and name.
	slices.SortFunc(resources, func(a, b workv1.AppliedManifestResourceMeta) int {
		return slices.Compare([]string{a.Group, a.Version, a.Resource, a.Namespace, a.Name}, []string{b.Group, b.Version, b.Resource, b.Namespace, b.Name})
	})
	if slices.Equal(resources, applied.Status.AppliedResources) {
		return nil
	}
	applied.Status.AppliedResources = resources
	return a.setStatus(ctx, a.Managed, applied, applied.Status)
}

func (a *Agent) read(ctx context.Context, meta workv1.ManifestResourceMeta) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetAPIVersion(metav1.GroupVersion{Group: meta.Group, Version: meta.Version}.String())
	live.SetKind(meta.Kind)
	return live, a.Managed.Get(ctx, client.ObjectKey{Namespace: meta.Namespace, Name: meta.Name}, live)
}

// report writes the status of a work if it is another one.
func (a *Agent) report(ctx context.Context, work *workv1.ManifestWork, status *workv1.ManifestWorkStatus) error {
	before, err := json.Marshal(work.Status)
	if err != nil {
		return err
	}
	after, err := json.Marshal(status)
	if err != nil || string(before) == string(after) {
		return err
	}
	work.Status = *status
	return a.setStatus(ctx, a.Hub, work, status)
}

func (a *Agent) setStatus(ctx context.Context, c client.Client, obj client.Object, status any) error {
	a.Writes++
	if a.Puts {
		return c.Status().Update(ctx, obj)
	}
	return c.Status().Patch(ctx, obj, mergePatch(obj, map[string]any{"status": status}))
}

func (a *Agent) setFinalizers(ctx context.Context, c client.Client, obj client.Object, finalizers []string) error {
	a.Writes++
	if a.Puts {
		obj.SetFinalizers(finalizers)
		return c.Update(ctx, obj)
	}
	return c.Patch(ctx, obj, mergePatch(obj, map[string]any{"metadata": map[string]any{"finalizers": finalizers}}))
}

// mergePatch is a patch that is refused when the object is another one or was changed.
func mergePatch(obj client.Object, change map[string]any) client.Patch {
	metadata, ok := change["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = obj.GetUID(), obj.GetResourceVersion()
	data, err := json.Marshal(change)
	if err != nil {
		panic(err) // Types of the API encode.
	}
	return client.RawPatch(types.MergePatchType, data)
}

// finalize takes away what was applied of a work, and lets it go.
func (a *Agent) finalize(ctx context.Context, work *workv1.ManifestWork) error {
	if !slices.Contains(work.Finalizers, names.FinalizerManifestWork) {
		return nil
	}
	status := work.Status.DeepCopy()
	deleting := metav1.Condition{
		Type: "Deleting", Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		Reason: "WorkDeleting", Message: "ManifestWork is being deleted",
	}
	if apimeta.SetStatusCondition(&status.Conditions, deleting) {
		return a.report(ctx, work, status)
	}
	applied := &workv1.AppliedManifestWork{}
	err := a.Managed.Get(ctx, client.ObjectKey{Name: a.HubHash + "-" + work.Name}, applied)
	if apierrors.IsNotFound(err) {
		left := slices.DeleteFunc(slices.Clone(work.Finalizers), func(f string) bool { return f == names.FinalizerManifestWork })
		return a.setFinalizers(ctx, a.Hub, work, left)
	}
	if err != nil {
		return err
	}
	if applied.DeletionTimestamp.IsZero() {
		a.Writes++
		return a.Managed.Delete(ctx, applied)
	}
	return a.remove(ctx, work, applied)
}

// remove deletes what an AppliedManifestWork owns, and lets it go when that is gone.
func (a *Agent) remove(ctx context.Context, work *workv1.ManifestWork, applied *workv1.AppliedManifestWork) error {
	gone := true
	for _, entry := range work.Status.ResourceStatus.Manifests {
		live, err := a.read(ctx, entry.ResourceMeta)
		owned := slices.ContainsFunc(live.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == applied.UID })
		if apierrors.IsNotFound(err) || err == nil && !owned {
			continue
		}
		gone = false
		if err == nil {
			a.Writes++
			err = a.Managed.Delete(ctx, live, client.Preconditions{UID: new(live.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if !gone {
		return nil
	}
	return a.setFinalizers(ctx, a.Managed, applied, nil)
}
