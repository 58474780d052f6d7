package owner

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Account returns the ServiceAccount of an owner reference, if reader has it. It returns nil
// if the ServiceAccount is gone, or was created again under its name.
func Account(ctx context.Context, reader client.Reader, namespace string, ref metav1.OwnerReference) (*corev1.ServiceAccount, error) {
	var found corev1.ServiceAccount
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &found)
	if err != nil || found.UID != ref.UID {
		return nil, client.IgnoreNotFound(err)
	}
	return &found, nil
}

// fieldManagers is how the names of the controllers' field managers begin.
const fieldManagers = "ocm.pullsecret."

// Wrote reports whether the controllers wrote an object, or a part of it.
func Wrote(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(m.Manager, fieldManagers)
	})
}

// Reference is the ServiceAccount as events name it.
func Reference(namespace string, account metav1.OwnerReference) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: account.APIVersion, Kind: account.Kind, Namespace: namespace, Name: account.Name, UID: account.UID}
}
