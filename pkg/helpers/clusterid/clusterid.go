package clusterid

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Of returns the id of an OpenShift cluster, and of any other one the UID of its
// namespace kube-system, which Kubernetes recommends as a cluster's id (KEP-2149).
func Of(ctx context.Context, reader client.Reader) (string, error) {
	if id, err := OpenShift(ctx, reader); err != nil || id != "" {
		return id, err
	}
	namespace := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	if err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil && !none(err) {
		return "", fmt.Errorf("read the UID of namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// OpenShift returns the id in the ClusterVersion of an OpenShift cluster.
func OpenShift(ctx context.Context, reader client.Reader) (string, error) {
	version := &unstructured.Unstructured{}
	version.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"})
	err := reader.Get(ctx, client.ObjectKey{Name: "version"}, version)
	if none(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the id of an OpenShift cluster: %w", err)
	}
	id, _, _ := unstructured.NestedString(version.Object, "spec", "clusterID")
	return id, nil
}

func none(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apimeta.IsNoMatchError(err)
}
