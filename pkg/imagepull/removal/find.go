package removal

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pages"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Left lists the remaining objects of pull secrets.
type Left struct {
	// Accounts list pull secrets, or name one.
	Accounts []corev1.ServiceAccount
	// Secrets are the pull secrets, without their data.
	Secrets []metav1.PartialObjectMetadata
	// Pods name a pull secret and have not ended: without it, their next pull may
	// fail.
	Pods []types.NamespacedName

	// pointer is the annotation with which ServiceAccounts name pull secrets, if
	// there is one.
	pointer string
	// ours and taken are the names of Secrets that are pull secrets, and of those
	// that have a name like one and are not.
	ours, taken sets.Set[types.NamespacedName]
}

// Find looks for what is left. It reads no Secret's data.
func Find(ctx context.Context, reader client.Reader) (Left, error) {
	return find(ctx, reader, (*Left).generic)
}

// FindOpenShift looks as well for pull secrets with OpenShift's names that the
// controller wrote. OpenShift's own controllers would take them over.
func FindOpenShift(ctx context.Context, reader client.Reader) (Left, error) {
	return find(ctx, reader, (*Left).generic, (*Left).openShift)
}

// step is a part of the search.
type step func(*Left, context.Context, client.Reader) error

func find(ctx context.Context, reader client.Reader, secrets ...step) (Left, error) {
	l := &Left{ours: sets.New[types.NamespacedName](), taken: sets.New[types.NamespacedName]()}
	for _, look := range append(secrets, (*Left).accounts, (*Left).pods) {
		if err := look(l, ctx, reader); err != nil {
			return Left{}, fmt.Errorf("list the remaining objects of pull secrets: %w", err)
		}
	}
	return *l, nil
}

// generic finds the Secrets that the controller made: they have its label, name a
// ServiceAccount, and belong to it.
func (l *Left) generic(ctx context.Context, reader client.Reader) error {
	return l.secrets(ctx, reader, func(secret *metav1.PartialObjectMetadata) bool {
		return known(owner.Generic(), secret, corev1.SecretTypeDockerConfigJson)
	})
}

// openShift finds the Secrets with OpenShift's names that the controller wrote.
func (l *Left) openShift(ctx context.Context, reader client.Reader) error {
	form := owner.OpenShift()
	l.pointer = form.Pointer()
	return l.secrets(ctx, reader, func(secret *metav1.PartialObjectMetadata) bool {
		return known(form, secret, corev1.SecretTypeDockercfg) && owner.Wrote(secret)
	}, form.Select())
}

// known reports whether a Secret is a pull secret of a form, if it has the type.
func known(form owner.Form, secret *metav1.PartialObjectMetadata, kind corev1.SecretType) bool {
	_, ok := form.Of(&corev1.Secret{ObjectMeta: secret.ObjectMeta, Type: kind})
	return ok
}

// secrets finds those Secrets that are ours.
func (l *Left) secrets(ctx context.Context, reader client.Reader, ours func(*metav1.PartialObjectMetadata) bool, options ...client.ListOption) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return pages.Each(ctx, reader, list, func(secret *metav1.PartialObjectMetadata) {
		if ours(secret) {
			l.Secrets = append(l.Secrets, *secret)
			l.ours.Insert(client.ObjectKeyFromObject(secret))
			return
		}
		l.taken.Insert(client.ObjectKeyFromObject(secret))
	}, options...)
}

// accounts finds the ServiceAccounts that list a pull secret, or one that is gone.
func (l *Left) accounts(ctx context.Context, reader client.Reader) error {
	return pages.Each(ctx, reader, &corev1.ServiceAccountList{}, func(account *corev1.ServiceAccount) {
		if len(l.without(account)) < len(account.ImagePullSecrets) || l.points(account) {
			l.Accounts = append(l.Accounts, *account)
		}
	})
}

// without returns what a ServiceAccount lists besides pull secrets.
func (l *Left) without(account *corev1.ServiceAccount) []corev1.LocalObjectReference {
	rest := []corev1.LocalObjectReference{}
	for _, entry := range account.ImagePullSecrets {
		key := types.NamespacedName{Namespace: account.Namespace, Name: entry.Name}
		gone := entry.Name == names.PullSecret(account.Name, account.UID) && !l.taken.Has(key)
		if !gone && !l.ours.Has(key) {
			rest = append(rest, entry)
		}
	}
	return rest
}

// points reports whether a ServiceAccount names a pull secret by its annotation.
func (l *Left) points(account *corev1.ServiceAccount) bool {
	name, ok := account.Annotations[l.pointer]
	return ok && l.ours.Has(types.NamespacedName{Namespace: account.Namespace, Name: name})
}

// pods finds the Pods that name a pull secret.
func (l *Left) pods(ctx context.Context, reader client.Reader) error {
	return pages.Each(ctx, reader, &corev1.PodList{}, func(pod *corev1.Pod) {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil {
			return
		}
		for _, entry := range pod.Spec.ImagePullSecrets {
			if l.ours.Has(types.NamespacedName{Namespace: pod.Namespace, Name: entry.Name}) {
				l.Pods = append(l.Pods, client.ObjectKeyFromObject(pod))
				return
			}
		}
	})
}
