package serviceaccount

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// wanted is a ServiceAccount as it should be: it lists its pull secret once that can
// be used. Where an annotation names the pull secret, it does that too, and no pod
// can mount the Secret.
func (r *Reconciler) wanted(ctx context.Context, account *corev1.ServiceAccount, secret *corev1.Secret) (*corev1.ServiceAccount, error) {
	want := account.DeepCopy()
	if pointer := r.Form.Pointer(); pointer != "" {
		if err := r.point(ctx, want, secret.Name); err != nil {
			return nil, err
		}
	}
	if entry := (corev1.LocalObjectReference{Name: secret.Name}); r.usable(secret) && !slices.Contains(want.ImagePullSecrets, entry) {
		want.ImagePullSecrets = append(want.ImagePullSecrets, entry)
	}
	return want, nil
}

// usable reports whether pulls with a pull secret can succeed. A legacy token has no
// end.
func (r *Reconciler) usable(secret *corev1.Secret) bool {
	s := content.Of(secret)
	if _, legacy := owner.LegacyToken(secret); legacy {
		return !s.Missing()
	}
	return s.Usable(r.Clock.Now())
}

// point has a ServiceAccount name its pull secret. Nothing is left of the one that it
// named before, if that is gone.
func (r *Reconciler) point(ctx context.Context, want *corev1.ServiceAccount, secret string) error {
	before := want.Annotations[r.Form.Pointer()]
	if before != "" && before != secret {
		gone, err := r.gone(ctx, want.Namespace, before)
		if err != nil {
			return err
		}
		if gone {
			r.unlist(want, before)
		}
	}
	metav1.SetMetaDataAnnotation(&want.ObjectMeta, r.Form.Pointer(), secret)
	want.Secrets = slices.DeleteFunc(want.Secrets, func(e corev1.ObjectReference) bool { return e.Name == secret })
	return nil
}

// gone reports whether the API server has no Secret of a name, or not for long.
func (r *Reconciler) gone(ctx context.Context, namespace, name string) (bool, error) {
	var found metav1.PartialObjectMetadata
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found)
	if apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("read Secret %s/%s, which its ServiceAccount lists: %w", namespace, name, err)
	}
	return found.DeletionTimestamp != nil, nil
}

// unlist takes a Secret out of the lists of a ServiceAccount.
func (r *Reconciler) unlist(account *corev1.ServiceAccount, secret string) {
	account.ImagePullSecrets = slices.DeleteFunc(account.ImagePullSecrets, func(e corev1.LocalObjectReference) bool { return e.Name == secret })
	if r.Form.Pointer() != "" {
		account.Secrets = slices.DeleteFunc(account.Secrets, func(e corev1.ObjectReference) bool { return e.Name == secret })
	}
}

// attach makes a ServiceAccount as it should be, unless another manager undoes that
// again and again.
func (r *Reconciler) attach(ctx context.Context, account, want *corev1.ServiceAccount, secret string) error {
	lacks := r.compare(account, want)
	if lacks == 0 {
		r.contention.present(account)
		return nil
	}
	attach, gaveUp := r.contention.missing(account, lacks, r.Clock.Now())
	if gaveUp {
		return r.contended(ctx, account, secret)
	}
	if !attach {
		return nil
	}
	version, err := r.write(ctx, account, want)
	if err != nil {
		return err
	}
	r.contention.attached(account, version, lacks)
	return nil
}

// compare returns what a ServiceAccount lacks.
func (r *Reconciler) compare(account, want *corev1.ServiceAccount) (lacks parts) {
	if !slices.Equal(account.ImagePullSecrets, want.ImagePullSecrets) {
		lacks |= partEntry
	}
	if pointer := r.Form.Pointer(); account.Annotations[pointer] != want.Annotations[pointer] {
		lacks |= partPointer
	}
	if !slices.Equal(account.Secrets, want.Secrets) {
		lacks |= partMounts
	}
	return lacks
}

// write makes a ServiceAccount as it should be if it is still the one that was read,
// and returns its new resourceVersion. imagePullSecrets is atomic to server-side
// apply: its owner owns the entries of others too, and removes them with its own.
// So this is a patch, on the condition that nothing has changed.
func (r *Reconciler) write(ctx context.Context, account, want *corev1.ServiceAccount) (version string, err error) {
	lacks := r.compare(account, want)
	if lacks == 0 {
		return account.ResourceVersion, nil
	}
	metadata := map[string]any{"uid": account.UID, "resourceVersion": account.ResourceVersion}
	changes := map[string]any{"metadata": metadata}
	if lacks&partEntry != 0 {
		changes["imagePullSecrets"] = want.ImagePullSecrets
	}
	if lacks&partMounts != 0 {
		changes["secrets"] = want.Secrets
	}
	if pointer := r.Form.Pointer(); lacks&partPointer != 0 {
		metadata["annotations"] = map[string]any{pointer: nil}
		if name, ok := want.Annotations[pointer]; ok {
			metadata["annotations"] = map[string]any{pointer: name}
		}
	}
	patch, err := json.Marshal(changes)
	if err != nil {
		return "", fmt.Errorf("encode the ServiceAccount: %w", err)
	}
	live := account.DeepCopy()
	if err := r.Client.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), Owner); err != nil {
		return "", fmt.Errorf("write ServiceAccount %s: %w", client.ObjectKeyFromObject(account), err)
	}
	return live.ResourceVersion, nil
}

// contended says who keeps removing the entry.
func (r *Reconciler) contended(ctx context.Context, account *corev1.ServiceAccount, secret string) error {
	var live corev1.ServiceAccount
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(account), &live); err != nil {
		return err
	}
	by := "another manager"
	if name := manager(live.ManagedFields); name != "" {
		by = fmt.Sprintf("%q", name)
	}
	r.warn(account, names.ReasonPullSecretContended, fmt.Sprintf(
		"%s removed %s from the ServiceAccount %d times within %s; it is not added again until the ServiceAccount changes; add it to imagePullSecrets in the other manager, or opt out with the annotation %s=false",
		by, secret, mostRemovals, removalsWithin, names.AnnotationPullSecret))
	return nil
}
