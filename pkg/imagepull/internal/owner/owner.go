package owner

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Labels are those of a pull secret.
func Labels() map[string]string {
	return map[string]string{names.LabelManagedBy: names.ManagedByImagePull}
}

// Of returns the ServiceAccount that a pull secret is for, and false for a Secret
// that is none.
func Of(secret *corev1.Secret) (metav1.OwnerReference, bool) {
	if secret.Labels[names.LabelManagedBy] != names.ManagedByImagePull ||
		secret.Type != corev1.SecretTypeDockerConfigJson && secret.Type != corev1.SecretTypeDockercfg {
		return metav1.OwnerReference{}, false
	}
	for _, ref := range secret.OwnerReferences {
		if ref.APIVersion == "v1" && ref.Kind == "ServiceAccount" && ref.Name == secret.Annotations[names.AnnotationPullSecretAccount] {
			return ref, true
		}
	}
	return metav1.OwnerReference{}, false
}

// Exists reports whether reader knows the ServiceAccount, and not another one that
// was made since under its name.
func Exists(ctx context.Context, reader client.Reader, namespace string, account metav1.OwnerReference) (bool, error) {
	var found corev1.ServiceAccount
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: account.Name}, &found)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return found.UID == account.UID, err
}

// Reference is the ServiceAccount as events name it.
func Reference(namespace string, account metav1.OwnerReference) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: account.APIVersion, Kind: account.Kind, Namespace: namespace, Name: account.Name, UID: account.UID}
}

// LegacyToken returns the name of the token Secret that a legacy pull secret of
// OpenShift was made from, and false for a Secret that is none or that was handed
// over to a bound token.
func LegacyToken(secret metav1.Object) (name string, ok bool) {
	annotations := secret.GetAnnotations()
	name = annotations[names.AnnotationOpenShiftTokenSecret]
	return name, name != "" && annotations[names.AnnotationOpenShiftBinding] != names.OpenShiftBound
}
