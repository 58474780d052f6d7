package clusterid_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/clusterid"
)

// reader is a cluster with the id of OpenShift, the UID of kube-system, or the error of
// a read in place of either.
type reader struct {
	client.Reader

	openShift, uid string
	err            error
}

func (r reader) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch object := object.(type) {
	case *unstructured.Unstructured:
		if r.openShift != "" {
			return unstructured.SetNestedField(object.Object, r.openShift, "spec", "clusterID")
		}
	case *metav1.PartialObjectMetadata:
		if r.uid != "" && key.Name == metav1.NamespaceSystem {
			object.UID = types.UID(r.uid)
			return nil
		}
	}
	return r.err
}

func TestOf(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(corev1.Resource("namespaces"), metav1.NamespaceSystem, errors.New("no"))
	missing := apierrors.NewNotFound(corev1.Resource("clusterversions"), "version")
	for _, tc := range []struct {
		name string
		from reader
		want string
		err  bool
	}{
		{name: "OpenShift has its own", from: reader{openShift: "a", uid: "b"}, want: "a"},
		{name: "any other has that of kube-system", from: reader{uid: "b", err: missing}, want: "b"},
		{name: "without permission there is none", from: reader{err: forbidden}},
		{name: "a failure is an error", from: reader{err: errors.New("timeout")}, err: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got, err := clusterid.Of(t.Context(), tc.from); got != tc.want || (err != nil) != tc.err {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
