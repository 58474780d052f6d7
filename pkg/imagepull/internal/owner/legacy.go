package owner

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// LegacyToken returns the name of the token Secret that a legacy pull secret of
// OpenShift was made from, and false for any other Secret and for one that was handed
// over to a bound token.
func LegacyToken(secret metav1.Object) (name string, ok bool) {
	annotations := secret.GetAnnotations()
	name = annotations[names.AnnotationOpenShiftTokenSecret]
	return name, name != "" && annotations[names.AnnotationOpenShiftBinding] != names.OpenShiftBound
}

// legacyOf reports whether a Secret is a legacy pull secret of a ServiceAccount.
func legacyOf(secret metav1.Object, account *corev1.ServiceAccount) bool {
	_, legacy := LegacyToken(secret)
	annotations := secret.GetAnnotations()
	uid := annotations[corev1.ServiceAccountUIDKey]
	return legacy && annotations[corev1.ServiceAccountNameKey] == account.Name && (uid == "" || uid == string(account.UID))
}
