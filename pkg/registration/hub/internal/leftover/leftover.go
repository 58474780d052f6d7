package leftover

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

// ManifestWorks is the resource whose objects the work agent has to clean up
// on the managed cluster before they may go.
func ManifestWorks() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "manifestworks"}
}

// AddOns is the resource of the add-ons of a cluster.
func AddOns() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "addon.open-cluster-management.io", Version: "v1beta1", Resource: "managedclusteraddons"}
}

// Hub reads and removes leftovers on the hub.
type Hub struct {
	// Client writes.
	Client client.Client
	// Live reads from the API server, not from a cache.
	Live client.Reader
	// Owner is the field manager.
	Owner client.FieldOwner
}

// List returns what is left of a resource in a namespace.
func (h Hub) List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]metav1.PartialObjectMetadata, error) {
	kind, err := h.Client.RESTMapper().KindFor(resource)
	if apimeta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := h.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		// The kind may have gone since the mapper saw it: a hub that is being
		// taken down loses these CRDs before its clusters.
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

// DeleteFirst deletes those of items whose turn it is: all with the lowest
// priority. What is being deleted already is not deleted again.
func (h Hub) DeleteFirst(ctx context.Context, items []metav1.PartialObjectMetadata) error {
	if len(items) == 0 {
		return nil
	}
	turn := priority(&items[0])
	for i := range items {
		turn = min(turn, priority(&items[i]))
	}
	var errs []error
	for i := range items {
		if priority(&items[i]) == turn {
			errs = append(errs, h.delete(ctx, &items[i]))
		}
	}
	return errors.Join(errs...)
}

// GiveUp deletes all items, because no agent is left for which an order would
// matter, strips every finalizer that waits for an agent, and returns the names
// of those that it let go.
func (h Hub) GiveUp(ctx context.Context, resource schema.GroupVersionResource, namespace string) (released []string, err error) {
	items, err := h.List(ctx, resource, namespace)
	if err != nil {
		return nil, err
	}
	for i := range items {
		if err := h.delete(ctx, &items[i]); err != nil {
			return nil, err
		}
	}
	if items, err = h.List(ctx, resource, namespace); err != nil { // With the versions after deletion.
		return nil, err
	}
	return h.release(ctx, items)
}

func (h Hub) delete(ctx context.Context, item *metav1.PartialObjectMetadata) error {
	if item.DeletionTimestamp != nil {
		return nil
	}
	return client.IgnoreNotFound(h.Client.Delete(ctx, item, client.Preconditions{UID: &item.UID}))
}

func (h Hub) release(ctx context.Context, items []metav1.PartialObjectMetadata) (released []string, err error) {
	for i := range items {
		item := &items[i]
		if item.DeletionTimestamp == nil || !slices.ContainsFunc(item.Finalizers, waitsForAgent) {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(item.Finalizers), waitsForAgent)
		if err := rbac.SetFinalizers(ctx, h.Client, h.Owner, item, kept); err != nil {
			return released, err
		}
		released = append(released, item.Name)
	}
	slices.Sort(released)
	return released, nil
}

// waitsForAgent reports whether a finalizer is removed only by, or after work
// of, the agent on the managed cluster.
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

// Deletion order of objects without, or without a valid, priority: before all
// that have one, 0 to 100.
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

// Released reports whether no agent is left that could clean up after a cluster
// that is being deleted: an administrator declared it gone, or the cluster left
// by itself and was not accepted since.
func Released(cluster *clusterv1.ManagedCluster) bool {
	left := cluster.Annotations[names.AnnotationLeft] == "true" && !cluster.Spec.HubAcceptsClient
	return cluster.DeletionTimestamp != nil && (left || cluster.Annotations[names.AnnotationForceDetach] == "true")
}

// ReasonForced is the reason of the event that tells what a forced detach left
// on the managed cluster.
const ReasonForced = "ForcedDetach"

// ActionForced is the action of that event. It differs by resource, because
// events that are alike in everything but their sentence are counted as one.
func ActionForced(resource schema.GroupVersionResource) string {
	return "Release." + resource.Resource
}

// MessageForced is the sentence of that event.
func MessageForced(resource schema.GroupVersionResource, released []string) string {
	return fmt.Sprintf("Gave up %d %s without the agent, so what they made stays on the managed cluster: %s",
		len(released), resource.Resource, strings.Join(released, ", "))
}
