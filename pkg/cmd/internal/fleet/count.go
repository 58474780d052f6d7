package fleet

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
)

// NoWorks is what CountWorks returns for none.
const NoWorks = "0 ManifestWorks"

// CountWorks says how many ManifestWorks are in the namespace of a cluster, or on the
// whole hub for the empty namespace.
func CountWorks(ctx context.Context, c client.Client, namespace string) (string, error) {
	return count(ctx, c, namespace, schema.GroupVersionKind{Group: workv1.GroupName, Version: "v1", Kind: "ManifestWorkList"}, "ManifestWorks")
}

// CountAddOns says how many add-ons a cluster has.
func CountAddOns(ctx context.Context, c client.Client, namespace string) (string, error) {
	return count(ctx, c, namespace, schema.GroupVersionKind{Group: addonv1beta1.GroupName, Version: "v1beta1", Kind: "ManagedClusterAddOnList"}, "add-ons")
}

// count says how many objects of a kind are in a namespace. A hub may not serve
// them, and the user may not be allowed to see them.
func count(ctx context.Context, c client.Client, namespace string, list schema.GroupVersionKind, noun string) (string, error) {
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(list)
	err := c.List(ctx, objects, client.InNamespace(namespace))
	switch {
	case apierrors.IsForbidden(err):
		return "all " + noun, nil
	case err != nil && !lookup.Gone(err):
		return "", err
	}
	return fmt.Sprintf("%d %s", len(objects.Items), noun), nil
}
