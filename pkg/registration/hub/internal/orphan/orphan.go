package orphan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/rbac"
)

// ManifestWorks is the resource whose objects the work agent cleans up on the
// managed cluster before they are removed.
func ManifestWorks() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "manifestworks"}
}

// AddOns is the resource of the add-ons of a cluster.
func AddOns() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "addon.open-cluster-management.io", Version: "v1beta1", Resource: "managedclusteraddons"}
}

// Collector lists and removes objects on the hub.
type Collector struct {
	// Client writes.
	Client client.Client
	// Live reads from the API server, not from a cache.
	Live client.Reader
	// Owner is the field manager.
	Owner client.FieldOwner
}

// List returns the objects of a resource in a namespace.
func (c Collector) List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]metav1.PartialObjectMetadata, error) {
	kind, err := c.Client.RESTMapper().KindFor(resource)
	if apimeta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		// The mapper may know a kind that is gone: a hub that is being removed loses
		// these CRDs before its clusters.
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("%s in namespace %s: %w", resource.Resource, namespace, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
	}
	return list.Items, nil
}

// DeleteFirst deletes the items with the lowest priority that are not being deleted
// yet.
func (c Collector) DeleteFirst(ctx context.Context, items []metav1.PartialObjectMetadata) error {
	if len(items) == 0 {
		return nil
	}
	first := priority(&items[0])
	for i := range items {
		first = min(first, priority(&items[i]))
	}
	var errs []error
	for i := range items {
		if priority(&items[i]) == first {
			errs = append(errs, c.delete(ctx, &items[i]))
		}
	}
	return errors.Join(errs...)
}

// Release deletes all objects of a resource, in any order because there is no agent,
// removes the finalizers that wait for an agent, and returns the names of the objects
// that had one.
func (c Collector) Release(ctx context.Context, resource schema.GroupVersionResource, namespace string) (released []string, err error) {
	items, err := c.List(ctx, resource, namespace)
	if err != nil {
		return nil, err
	}
	for i := range items {
		if err := c.delete(ctx, &items[i]); err != nil {
			return nil, err
		}
	}
	if items, err = c.List(ctx, resource, namespace); err != nil { // With the versions after deletion.
		return nil, err
	}
	return c.release(ctx, items)
}

func (c Collector) delete(ctx context.Context, item *metav1.PartialObjectMetadata) error {
	if item.DeletionTimestamp != nil {
		return nil
	}
	return client.IgnoreNotFound(c.Client.Delete(ctx, item, client.Preconditions{UID: &item.UID}))
}

func (c Collector) release(ctx context.Context, items []metav1.PartialObjectMetadata) (released []string, err error) {
	for i := range items {
		item := &items[i]
		if item.DeletionTimestamp == nil || !slices.ContainsFunc(item.Finalizers, waitsForAgent) {
			continue
		}
		remaining := slices.DeleteFunc(slices.Clone(item.Finalizers), waitsForAgent)
		if err := rbac.SetFinalizers(ctx, c.Client, c.Owner, item, remaining); err != nil {
			return released, err
		}
		released = append(released, item.Name)
	}
	slices.Sort(released)
	return released, nil
}

// waitsForAgent reports whether the removal of a finalizer depends on the agent on
// the managed cluster.
func waitsForAgent(finalizer string) bool {
	switch finalizer {
	case names.FinalizerManifestWork,
		"addon.open-cluster-management.io/addon-pre-delete",
		"addon.open-cluster-management.io/hosting-addon-pre-delete",
		"addon.open-cluster-management.io/hosting-manifests-cleanup",
		"cluster.open-cluster-management.io/addon-pre-delete",
		"cluster.open-cluster-management.io/hosting-addon-pre-delete",
		"cluster.open-cluster-management.io/hosting-manifests-cleanup":
		return true
	}
	return false
}

// Objects without a valid priority are deleted before those with one, 0 to 100.
const (
	priorityNone    = -2
	priorityInvalid = -1
	priorityLast    = 100
)

func priority(object client.Object) int {
	value, ok := object.GetAnnotations()[names.AnnotationCleanupPriority]
	if !ok {
		return priorityNone
	}
	p, err := strconv.Atoi(value)
	if err != nil || p < 0 || p > priorityLast {
		return priorityInvalid
	}
	return p
}

// Released reports whether a cluster that is being deleted has no agent that could
// clean up: an administrator declared it gone, or the cluster detached itself and was
// not accepted since.
func Released(cluster *clusterv1.ManagedCluster) bool {
	left := cluster.Annotations[names.AnnotationLeft] == "true" && !cluster.Spec.HubAcceptsClient
	return cluster.DeletionTimestamp != nil && (left || cluster.Annotations[names.AnnotationForceDetach] == "true")
}

// ReasonForced is the reason of the event that reports which resources a forced
// detach left on the managed cluster.
const ReasonForced = "ForcedDetach"

// ActionForced is the action of that event. It differs by resource, because
// Kubernetes counts events that differ only in their note as one.
func ActionForced(resource schema.GroupVersionResource) string {
	return "Release." + resource.Resource
}

// MessageForced is the note of that event.
func MessageForced(resource schema.GroupVersionResource, released []string) string {
	return fmt.Sprintf("Released %d %s without the agent; the resources that they created remain on the managed cluster: %s",
		len(released), resource.Resource, strings.Join(released, ", "))
}
