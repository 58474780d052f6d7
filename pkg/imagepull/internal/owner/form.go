package owner

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Form is the naming and labelling of pull secrets: Generic or OpenShift.
type Form struct {
	// types are the types of Secrets that can be pull secrets, and labels their
	// required labels.
	types  []corev1.SecretType
	labels map[string]string
	// annotations are the annotations of every pull secret.
	annotations map[string]string
	// accounts are the annotations that name the ServiceAccount. The first one is
	// written, all are read.
	accounts []string
	// pointer is the annotation of a ServiceAccount that names its pull secret; empty
	// if the name alone says it.
	pointer string
	// name returns the name of a new pull secret.
	name func(account string, uid types.UID) string
}

// Generic is the form of this product.
func Generic() Form {
	return Form{
		types:    []corev1.SecretType{corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg},
		labels:   map[string]string{names.LabelManagedBy: names.ManagedByImagePull},
		accounts: []string{names.AnnotationPullSecretAccount},
		name:     names.PullSecret,
	}
}

// OpenShift is the form that OpenShift's controllers give pull secrets. What they
// made is taken over.
func OpenShift() Form {
	return Form{
		types:       []corev1.SecretType{corev1.SecretTypeDockercfg},
		annotations: map[string]string{names.AnnotationOpenShiftBinding: names.OpenShiftBound},
		accounts:    []string{names.AnnotationOpenShiftAccount, names.AnnotationOpenShiftAcount},
		pointer:     names.AnnotationOpenShiftPullSecret,
		name:        names.OpenShiftPullSecret,
	}
}

// Cache limits a cache of Secrets to those that may be pull secrets.
func (f Form) Cache() cache.ByObject {
	selected := f.Select()
	return cache.ByObject{Label: selected.LabelSelector, Field: selected.FieldSelector}
}

// Select limits a list of Secrets to those that may be pull secrets.
func (f Form) Select() *client.ListOptions {
	if len(f.labels) > 0 {
		return &client.ListOptions{LabelSelector: labels.SelectorFromSet(f.labels)}
	}
	return &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("type", string(f.types[0]))}
}

// Pointer is the annotation of a ServiceAccount that names its pull secret, empty if
// there is none.
func (f Form) Pointer() string { return f.pointer }

// Metadata returns the metadata of the pull secret of a ServiceAccount.
func (f Form) Metadata(account *corev1.ServiceAccount) metav1.ObjectMeta {
	annotations := map[string]string{f.accounts[0]: account.Name}
	maps.Copy(annotations, f.annotations)
	return metav1.ObjectMeta{
		Namespace:       account.Namespace,
		Name:            f.name(account.Name, account.UID),
		Labels:          f.labels,
		Annotations:     annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}},
	}
}

// Of returns the ServiceAccount of a pull secret, and false for any other Secret.
func (f Form) Of(secret *corev1.Secret) (metav1.OwnerReference, bool) {
	if !f.possible(secret) || !contains(secret.Labels, f.labels) {
		return metav1.OwnerReference{}, false
	}
	for _, ref := range accountRefs(secret) {
		if ref.Name == f.account(secret) {
			return ref, true
		}
	}
	return metav1.OwnerReference{}, false
}

// Complete reports whether a Secret has all of the metadata of a ServiceAccount's pull
// secret, except for its name.
func (f Form) Complete(secret *corev1.Secret, account *corev1.ServiceAccount) bool {
	ref, ok := f.Of(secret)
	return ok && ref.UID == account.UID && contains(secret.Annotations, f.Metadata(account).Annotations)
}

// Adopts reports whether a Secret can become the pull secret of a ServiceAccount: it
// names the ServiceAccount or no other one, and has no other owner.
func (f Form) Adopts(secret *corev1.Secret, account *corev1.ServiceAccount) bool {
	if !f.possible(secret) {
		return false
	}
	refs := accountRefs(secret)
	owned := slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return ref.UID == account.UID })
	if len(refs) > 0 && !owned {
		return false
	}
	named := f.account(secret)
	marked := owned || len(f.labels) > 0 && contains(secret.Labels, f.labels)
	return named == account.Name || named == "" && marked
}

// Accounts are the names of all ServiceAccounts that a Secret may be for.
func (f Form) Accounts(secret metav1.Object) []string {
	var found []string
	for _, key := range f.accounts {
		found = append(found, secret.GetAnnotations()[key])
	}
	if _, legacy := LegacyToken(secret); legacy {
		found = append(found, secret.GetAnnotations()[corev1.ServiceAccountNameKey])
	}
	for _, ref := range accountRefs(secret) {
		found = append(found, ref.Name)
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(name string) bool { return name == "" })
}

// Choose returns the pull secret of a ServiceAccount among Secrets, nil if it has none:
// the one that its annotation names; a legacy one, whose token may be in use; the one
// that would be created; one that it lists; any. A ServiceAccount whose annotation is
// removed therefore gets the same Secret again.
func (f Form) Choose(secrets []corev1.Secret, account *corev1.ServiceAccount) *corev1.Secret {
	candidates := slices.DeleteFunc(secrets, func(s corev1.Secret) bool {
		return s.DeletionTimestamp != nil || !legacyOf(&s, account) && !f.Adopts(&s, account)
	})
	slices.SortFunc(candidates, func(a, b corev1.Secret) int { return strings.Compare(a.Name, b.Name) })
	for _, preferred := range []func(corev1.Secret) bool{
		func(s corev1.Secret) bool { return s.Name == account.Annotations[f.pointer] },
		func(s corev1.Secret) bool { return legacyOf(&s, account) },
		func(s corev1.Secret) bool { return s.Name == f.name(account.Name, account.UID) },
		func(s corev1.Secret) bool {
			return slices.Contains(account.ImagePullSecrets, corev1.LocalObjectReference{Name: s.Name})
		},
		func(corev1.Secret) bool { return true },
	} {
		if i := slices.IndexFunc(candidates, preferred); i >= 0 {
			return &candidates[i]
		}
	}
	return nil
}

// Superseded reports whether a ServiceAccount has another pull secret than this one.
func (f Form) Superseded(secret *corev1.Secret, account *corev1.ServiceAccount) bool {
	name := account.Annotations[f.pointer]
	return name != "" && name != secret.Name
}

// possible reports whether a Secret could be a pull secret with a bound token.
func (f Form) possible(secret *corev1.Secret) bool {
	_, legacy := LegacyToken(secret)
	return slices.Contains(f.types, secret.Type) && !legacy
}

// account is the name of the ServiceAccount that a Secret is annotated with.
func (f Form) account(secret metav1.Object) string {
	for _, key := range f.accounts {
		if name := secret.GetAnnotations()[key]; name != "" {
			return name
		}
	}
	return ""
}

// accountRefs are the owner references to ServiceAccounts.
func accountRefs(secret metav1.Object) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(secret.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return ref.APIVersion != "v1" || ref.Kind != "ServiceAccount"
	})
}

// contains reports whether a map has all that another one has.
func contains(m, wanted map[string]string) bool {
	for key, value := range wanted {
		if m[key] != value {
			return false
		}
	}
	return true
}
