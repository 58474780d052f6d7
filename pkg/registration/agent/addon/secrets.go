package addon

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// byAddOn indexes Secrets by their add-on.
const byAddOn = "addon"

// secretCache caches the Secrets with this agent's label, in all namespaces.
type secretCache struct {
	cache.Cache

	agent    string
	reader   client.Reader
	writer   client.Client
	informer cache.Informer
}

func newSecretCache(config Config) (*secretCache, error) {
	managed := config.Managed
	objects, err := cache.New(managed.GetConfig(), cache.Options{
		HTTPClient: managed.GetHTTPClient(),
		Scheme:     managed.GetScheme(),
		Mapper:     managed.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Label: labels.SelectorFromSet(labels.Set{names.LabelAddOnCredential: config.Namespace})},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to watch the Secrets of add-ons: %w", err)
	}
	return &secretCache{Cache: objects, agent: config.Namespace, reader: managed.GetAPIReader(), writer: managed.GetClient()}, nil
}

// watch calls changed with the name of the add-on whenever one of its Secrets
// changes.
func (c *secretCache) watch(ctx context.Context, changed func(addOn string)) error {
	if err := c.IndexField(ctx, &corev1.Secret{}, byAddOn, func(o client.Object) []string {
		return []string{o.GetAnnotations()[names.AnnotationCredentialAddOn]}
	}); err != nil {
		return err
	}
	informer, err := c.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	c.informer = informer
	_, err = informer.AddEventHandler(onChange(func(o client.Object) { changed(o.GetAnnotations()[names.AnnotationCredentialAddOn]) }))
	return err
}

func (c *secretCache) synced() bool { return c.informer != nil && c.informer.HasSynced() }

// of returns the cached Secrets of an add-on. Callers must not change them.
func (c *secretCache) of(ctx context.Context, addOn string) (map[client.ObjectKey]*corev1.Secret, error) {
	var list corev1.SecretList
	if err := c.List(ctx, &list, client.MatchingFields{byAddOn: addOn}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Secrets of add-on %s: %w", addOn, err)
	}
	secrets := make(map[client.ObjectKey]*corev1.Secret, len(list.Items))
	for i := range list.Items {
		secrets[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	return secrets, nil
}

// live returns a Secret from the API server, nil if there is none.
func (c *secretCache) live(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var secret corev1.Secret
	err := c.reader.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", key, err)
	}
	return &secret, nil
}

// marked reports whether a Secret has the label and annotation of this agent.
func (c *secretCache) marked(secret *corev1.Secret) bool {
	return secret.Labels[names.LabelAddOnCredential] == c.agent && secret.Annotations[names.AnnotationCredentialAddOn] != ""
}

// replace sets the data of the Secret of a registration, and adds notes to its
// annotations. It fails if the Secret differs from old, which is nil for a new one.
func (c *secretCache) replace(ctx context.Context, old *corev1.Secret, it *item, data driver.Data, notes map[string]string) error {
	if notes == nil {
		notes = map[string]string{names.AnnotationCredentialAddOn: it.addOn}
	}
	return c.write(ctx, old, it.secret, data, notes)
}

func (c *secretCache) write(ctx context.Context, old *corev1.Secret, key client.ObjectKey, data driver.Data, notes map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if old == nil {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: key.Namespace, Name: key.Name,
				Labels: map[string]string{names.LabelAddOnCredential: c.agent}, Annotations: notes,
			},
			Data: data,
		}
		if err := c.writer.Create(ctx, secret, Owner); err != nil {
			return fmt.Errorf("create Secret %s: %w", key, err)
		}
		return nil
	}
	secret := old.DeepCopy()
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	secret.Labels[names.LabelAddOnCredential] = c.agent
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	maps.Copy(secret.Annotations, notes)
	secret.Data = data
	if apiequality.Semantic.DeepEqual(old, secret) {
		return nil
	}
	if err := c.writer.Update(ctx, secret, Owner); err != nil {
		return fmt.Errorf("update Secret %s: %w", key, err)
	}
	return nil
}

// sweep deletes the Secrets of registrations that no longer exist.
func (r *Reconciler) sweep(ctx context.Context, s *scope) error {
	wanted := map[client.ObjectKey]bool{}
	for _, it := range s.items {
		wanted[it.secret] = true
		wanted[r.pendingKey(it)] = true
	}
	for key, secret := range s.secrets {
		if wanted[key] {
			continue
		}
		if err := r.drop(ctx, secret); err != nil {
			return err
		}
		delete(s.memory.attempts, key.Name)
		r.config.Metrics.drop(s.addOn.Name, key.Name)
	}
	return nil
}

// drop deletes a Secret of an add-on. Any Secret can have the label, so it deletes
// only those with a name that the agent gives.
func (r *Reconciler) drop(ctx context.Context, secret *corev1.Secret) error {
	if !ours(secret, r.config.Namespace) || r.validateSecret(client.ObjectKeyFromObject(secret)) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	precondition := client.Preconditions{UID: &secret.UID}
	if err := client.IgnoreNotFound(r.config.Managed.GetClient().Delete(ctx, secret, precondition)); err != nil {
		return fmt.Errorf("delete Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// ours reports whether a Secret's name is one that the agent gives.
func ours(secret *corev1.Secret, agent string) bool {
	if target, ok := secret.Annotations[names.AnnotationCredentialPending]; ok {
		namespace, name, _ := strings.Cut(target, "/")
		return secret.Namespace == agent && secret.Name == names.AddOnPendingSecret(namespace, name)
	}
	return names.IsAddOnSecret(secret.Annotations[names.AnnotationCredentialAddOn], secret.Name)
}
