package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pages"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podproblem"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
)

// Inventory lists the pull secrets of a cluster, or of one namespace.
type Inventory struct {
	// Secrets are the pull secrets, in the order of their names.
	Secrets []PullSecret
	// Accounts are all ServiceAccounts, without what others keep of them.
	Accounts []*metav1.PartialObjectMetadata
	// Late are the Pods that cannot pull and have no entry of the pull secret that
	// their ServiceAccount lists: they are older than it.
	Late []types.NamespacedName

	// at is the place of a pull secret in Secrets, by its name, and by its
	// ServiceAccount's.
	at, of map[types.NamespacedName]int
}

// Preset limits the pull secrets with a bound token to those that a controller
// renews. Pull secrets that OpenShift made from a legacy token count for all.
type Preset string

// The presets.
const (
	// AnyPreset is for a cluster whose controller is not known.
	AnyPreset Preset = ""
	// Generic is a controller without a preset.
	Generic Preset = "generic"
	// OpenShift is a controller with the preset for OpenShift. Without it, OpenShift's
	// own controllers renew the pull secrets of that form.
	OpenShift Preset = "openshift"
)

// PresetOf returns the preset of a controller with a configuration.
func PresetOf(config imagepull.Config) Preset {
	if config.Preset == imagepull.OpenShift {
		return OpenShift
	}
	return Generic
}

// forms are all forms of pull secrets.
func forms() map[Preset]owner.Form {
	return map[Preset]owner.Form{Generic: owner.Generic(), OpenShift: owner.OpenShift()}
}

// Read looks at the pull secrets of a preset in a namespace, or in all if it is empty.
func Read(ctx context.Context, reader client.Reader, namespace string, preset Preset, now time.Time) (*Inventory, error) {
	i := &Inventory{at: map[types.NamespacedName]int{}, of: map[types.NamespacedName]int{}}
	where := client.InNamespace(namespace)
	for of, form := range forms() {
		err := pages.Each(ctx, reader, &corev1.SecretList{}, func(secret *corev1.Secret) {
			if _, ok := owner.LegacyToken(secret); ok {
				i.Secrets = append(i.Secrets, legacy(secret))
			} else if account, ok := form.Of(secret); ok && (preset == AnyPreset || preset == of) {
				i.Secrets = append(i.Secrets, pullSecret(secret, account, now))
			}
		}, where, form.Select())
		if err != nil {
			return nil, fmt.Errorf("read pull secrets: %w", err)
		}
	}
	slices.SortFunc(i.Secrets, func(a, b PullSecret) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for n, secret := range i.Secrets {
		i.at[types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}] = n
		account := types.NamespacedName{Namespace: secret.Namespace, Name: secret.ServiceAccount}
		if other, ok := i.of[account]; !ok || i.Secrets[other].State == StateLegacy {
			i.of[account] = n
		}
	}
	if err := pages.Each(ctx, reader, &corev1.ServiceAccountList{}, i.account, where); err != nil {
		return nil, fmt.Errorf("read ServiceAccounts: %w", err)
	}
	if err := pages.Each(ctx, reader, &corev1.PodList{}, i.pod, where); err != nil {
		return nil, fmt.Errorf("read Pods: %w", err)
	}
	return i, nil
}

// Get looks at one pull secret. It returns nil if there is no such pull secret.
func Get(ctx context.Context, reader client.Reader, name types.NamespacedName, now time.Time) (*PullSecret, error) {
	var secret corev1.Secret
	if err := reader.Get(ctx, name, &secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	for _, form := range forms() {
		if account, ok := form.Of(&secret); ok {
			return new(pullSecret(&secret, account, now)), nil
		}
	}
	return nil, nil
}

// Of returns the pull secret of a ServiceAccount, nil if there is none.
func (i *Inventory) Of(account types.NamespacedName) *PullSecret {
	n, ok := i.of[account]
	if !ok {
		return nil
	}
	return &i.Secrets[n]
}

func (i *Inventory) account(account *corev1.ServiceAccount) {
	i.Accounts = append(i.Accounts, &metav1.PartialObjectMetadata{ObjectMeta: account.ObjectMeta})
	if secret := i.Of(client.ObjectKeyFromObject(account)); secret != nil {
		secret.Listed = names(account.ImagePullSecrets, secret.Name)
	}
}

// pod counts who names a pull secret, and finds those that are too old to.
func (i *Inventory) pod(pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	for _, entry := range pod.Spec.ImagePullSecrets {
		if n, ok := i.at[types.NamespacedName{Namespace: pod.Namespace, Name: entry.Name}]; ok {
			i.Secrets[n].Pods++
		}
	}
	secret := i.Of(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName})
	if secret != nil && secret.Listed && !names(pod.Spec.ImagePullSecrets, secret.Name) && podproblem.Unpulled(pod) {
		i.Late = append(i.Late, client.ObjectKeyFromObject(pod))
	}
}

func names(entries []corev1.LocalObjectReference, secret string) bool {
	return slices.Contains(entries, corev1.LocalObjectReference{Name: secret})
}
