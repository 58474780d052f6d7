package legacytoken

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// errNotAsHandedOver says that a handover cannot be undone exactly.
var errNotAsHandedOver = errors.New("its labels, annotations, owners or finalizers changed during the migration")

// openShift reports whether a pull secret is one of OpenShift's for its integrated
// registry, by what OpenShift or a handover wrote on it.
func openShift(secret *corev1.Secret) bool {
	_, made := secret.Annotations[names.AnnotationOpenShiftTokenSecret]
	_, bound := secret.Annotations[names.AnnotationOpenShiftBinding]
	return secret.Type == corev1.SecretTypeDockercfg && (made || bound)
}

// rejection returns why a pull secret cannot be handed over to the pull secret
// controller, empty if it can: it must lose no credential except the legacy token.
func rejection(secret *corev1.Secret, t *Token, account *corev1.ServiceAccount) string {
	if secret.Namespace != t.Namespace {
		return "it is in another namespace than its ServiceAccount, so a token cannot be bound to it; replace it with a pull secret of a ServiceAccount in that namespace"
	}
	if secret.DeletionTimestamp != nil {
		return "it is being deleted"
	}
	if secret.Immutable != nil && *secret.Immutable {
		return "it is immutable"
	}
	if reason := managed(secret, t, account); reason != "" {
		return reason
	}
	return lost(secret, t)
}

// managed returns what else manages a pull secret, empty for nothing.
func managed(secret *corev1.Secret, t *Token, account *corev1.ServiceAccount) string {
	if other := secret.Labels[names.LabelManagedBy]; other != "" && other != names.ManagedByImagePull && !openShift(secret) {
		return fmt.Sprintf("it is managed by %s, according to its label %s", other, names.LabelManagedBy)
	}
	if controller := metav1.GetControllerOf(secret); controller != nil && !ownedBy(*controller, t) {
		return fmt.Sprintf("%s %s controls it", controller.Kind, controller.Name)
	}
	if other := account.Annotations[names.AnnotationOpenShiftPullSecret]; openShift(secret) && other != "" && other != secret.Name {
		return fmt.Sprintf("the pull secret of ServiceAccount %s is %s, according to its annotation %s", account.Name, other, names.AnnotationOpenShiftPullSecret)
	}
	return ""
}

// lost says which content of a pull secret would be lost; empty if none would.
func lost(secret *corev1.Secret, t *Token) string {
	config, err := readDockerConfig(secret)
	switch {
	case err != nil:
		return err.Error()
	case config.more:
		return "it has data other than registry credentials, which would be lost"
	}
	var others []string
	for _, host := range config.hosts() {
		if a := config.auths[host]; !a.only() || sumOf([]byte(a.password())) != t.sum {
			others = append(others, host)
		}
	}
	if len(others) > 0 {
		return fmt.Sprintf("it has another credential for %s, which would be lost", strings.Join(others, ", "))
	}
	return ""
}

// ownedBy reports whether an owner is the Secret of a token.
func ownedBy(owner metav1.OwnerReference, t *Token) bool {
	return owner.APIVersion == "v1" && owner.Kind == "Secret" && owner.Name == t.Name
}

// handOver returns a pull secret as the controller recognizes it. It removes the owner
// reference to the token Secret: otherwise the pull secret would be deleted with it.
func handOver(secret *corev1.Secret, t *Token, account *corev1.ServiceAccount) *corev1.Secret {
	handed := secret.DeepCopy()
	handed.OwnerReferences = slices.DeleteFunc(handed.OwnerReferences, func(o metav1.OwnerReference) bool { return ownedBy(o, t) })
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}
	if !slices.ContainsFunc(handed.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
		handed.OwnerReferences = append(handed.OwnerReferences, owner)
	}
	if !openShift(secret) {
		metav1.SetMetaDataLabel(&handed.ObjectMeta, names.LabelManagedBy, names.ManagedByImagePull)
		metav1.SetMetaDataAnnotation(&handed.ObjectMeta, names.AnnotationPullSecretAccount, account.Name)
		return handed
	}
	metav1.SetMetaDataAnnotation(&handed.ObjectMeta, names.AnnotationOpenShiftBinding, names.OpenShiftBound)
	metav1.SetMetaDataAnnotation(&handed.ObjectMeta, names.AnnotationOpenShiftAccount, account.Name)
	delete(handed.Annotations, names.AnnotationOpenShiftTokenSecret)
	delete(handed.Annotations, names.AnnotationOpenShiftTokenValue)
	handed.Finalizers = slices.DeleteFunc(handed.Finalizers, func(f string) bool { return f == names.OpenShiftLegacyToken })
	return handed
}

// takeBack returns a pull secret as it was before a handover; later changes by others
// stay, unless they equal what the handover wrote.
func takeBack(live, before, handed *corev1.Secret) (*corev1.Secret, error) {
	if !equality.Semantic.DeepEqual(live.OwnerReferences, handed.OwnerReferences) ||
		!equality.Semantic.DeepEqual(live.Finalizers, handed.Finalizers) {
		return nil, errNotAsHandedOver
	}
	back := live.DeepCopy()
	back.OwnerReferences, back.Finalizers = before.OwnerReferences, before.Finalizers
	var err error
	if back.Labels, err = revert(live.Labels, before.Labels, handed.Labels); err != nil {
		return nil, err
	}
	back.Annotations, err = revert(live.Annotations, before.Annotations, handed.Annotations)
	return back, err
}

// revert undoes in live what makes handed different from before.
func revert(live, before, handed map[string]string) (map[string]string, error) {
	back := maps.Clone(live)
	if back == nil {
		back = map[string]string{}
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(handed))) {
		was, had := before[key]
		is, has := handed[key]
		if was == is && had == has {
			continue
		}
		if now, ok := live[key]; now != is || ok != has {
			return nil, errNotAsHandedOver
		}
		delete(back, key)
		if had {
			back[key] = was
		}
	}
	return back, nil
}

// bound reports whether every credential in a pull secret is a token that is bound
// to it.
func bound(secret *corev1.Secret) bool {
	_, ok := readBound(secret)
	return ok
}

// readBound reads a pull secret for which bound is true.
func readBound(secret *corev1.Secret) (dockerConfig, bool) {
	config, err := readDockerConfig(secret)
	if err != nil || len(config.auths) == 0 {
		return dockerConfig{}, false
	}
	for _, a := range config.auths {
		var claims struct {
			Kubernetes struct {
				Secret struct {
					UID string `json:"uid"`
				} `json:"secret"`
			} `json:"kubernetes.io"`
		}
		if jwk.UnverifiedClaims(a.password(), &claims) != nil || claims.Kubernetes.Secret.UID != string(secret.UID) {
			return dockerConfig{}, false
		}
	}
	return config, true
}

// keyOf is the namespaced name of a pull secret.
func (p PullSecret) key() client.ObjectKey {
	return client.ObjectKey{Namespace: p.Namespace, Name: p.Name}
}
