package serviceaccount

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// attach lists a usable pull secret in the ServiceAccount's imagePullSecrets.
func (r *Reconciler) attach(ctx context.Context, account *corev1.ServiceAccount, secret string) error {
	entry := corev1.LocalObjectReference{Name: secret}
	if slices.Contains(account.ImagePullSecrets, entry) {
		r.contention.present(account)
		return nil
	}
	attach, gaveUp := r.contention.missing(account, r.Clock.Now())
	if gaveUp {
		return r.contended(ctx, account, secret)
	}
	if !attach {
		return nil
	}
	version, err := r.list(ctx, account, append(slices.Clone(account.ImagePullSecrets), entry))
	if err != nil {
		return err
	}
	r.contention.attached(account, version)
	return nil
}

// detach takes the entry out of the list.
func (r *Reconciler) detach(ctx context.Context, account *corev1.ServiceAccount, secret string) error {
	entry := corev1.LocalObjectReference{Name: secret}
	if !slices.Contains(account.ImagePullSecrets, entry) {
		return nil
	}
	_, err := r.list(ctx, account, slices.DeleteFunc(slices.Clone(account.ImagePullSecrets), func(e corev1.LocalObjectReference) bool { return e == entry }))
	return err
}

// list writes imagePullSecrets if the ServiceAccount is still the one that was
// read, and returns its new resourceVersion. The list is atomic to server-side
// apply: its owner owns the entries of others too, and removes them with its own.
// So this is a patch, on the condition that nothing has changed.
func (r *Reconciler) list(ctx context.Context, account *corev1.ServiceAccount, entries []corev1.LocalObjectReference) (version string, err error) {
	patch, err := json.Marshal(map[string]any{
		"metadata":         map[string]any{"uid": account.UID, "resourceVersion": account.ResourceVersion},
		"imagePullSecrets": entries,
	})
	if err != nil {
		return "", fmt.Errorf("encode imagePullSecrets: %w", err)
	}
	live := account.DeepCopy()
	if err := r.Client.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), Owner); err != nil {
		return "", fmt.Errorf("write imagePullSecrets of ServiceAccount %s: %w", client.ObjectKeyFromObject(account), err)
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
		"%s removed %s from imagePullSecrets %d times within %s; it is not added again until the ServiceAccount changes: have the other manager list it, or opt out with the annotation %s=false",
		by, secret, mostRemovals, removalsWithin, names.AnnotationPullSecret))
	return nil
}
