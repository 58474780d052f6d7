package servingcert

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// FieldManager owns what the issuer writes.
const FieldManager = "ocm.servingcert"

// Reconciler issues the two Secrets and the ConfigMap by the rules.
type Reconciler struct {
	config Config
	client client.Client
	// uncached reads what is written here: a CA that is not in the cache yet
	// must not be issued twice.
	uncached client.Reader
	clock    clock.PassiveClock
	// trusted is the CA that all clients trust, and since when, as observed by this
	// process. There is one worker.
	trusted *x509.Certificate
	since   time.Time
}

// Reconcile reconciles all objects; there is one of each.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	after, ok := r.config.After.DeepCopyObject().(client.Object)
	if !ok {
		return ctrl.Result{}, errors.ErrUnsupported
	}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(after), after)
	if err != nil || after.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // Nothing serves.
	}
	live, err := r.read(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	live.owner = r.owner(after)
	now := r.clock.Now()
	plan, err := r.config.Rules.Decide(now, r.observe(now, live.state()))
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.write(ctx, live, plan); err != nil {
		return ctrl.Result{}, err
	}
	if len(plan.Why) > 0 {
		ctrl.LoggerFrom(ctx).Info("Issued a certificate", "for", r.config.Objects.Serving, "why", strings.Join(plan.Why, "; "))
	}
	return ctrl.Result{RequeueAfter: max(plan.Next.Sub(now), time.Second)}, nil
}

// observe records since when clients trust the current CA.
func (r *Reconciler) observe(now time.Time, s State) State {
	ca, err := s.Signer.parse()
	if err != nil || !s.trusts(ca.cert) {
		r.trusted = nil
		return s
	}
	if r.trusted == nil || !r.trusted.Equal(ca.cert) {
		r.trusted, r.since = ca.cert, now
	}
	s.TrustedSince = r.since
	return s
}

// objects are the live objects, nil if they do not exist.
type objects struct {
	signer, serving *corev1.Secret
	bundle          *corev1.ConfigMap
	trusted         [][]byte
	// owner is the owner reference to set, if any.
	owner *metav1.OwnerReference
}

// owner returns the owner reference for what is issued: to the object that it is
// issued for, if that is in the same namespace.
func (r *Reconciler) owner(after client.Object) *metav1.OwnerReference {
	if after.GetNamespace() != r.config.Namespace {
		return nil
	}
	kind, err := r.client.GroupVersionKindFor(after)
	if err != nil {
		return nil
	}
	return &metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: after.GetName(), UID: after.GetUID()}
}

func (r *Reconciler) read(ctx context.Context) (objects, error) {
	var live objects
	var err error
	if live.signer, err = get(ctx, r.uncached, r.key(r.config.Objects.Signer), &corev1.Secret{}); err != nil {
		return objects{}, err
	}
	if live.serving, err = get(ctx, r.uncached, r.key(r.config.Objects.Serving), &corev1.Secret{}); err != nil {
		return objects{}, err
	}
	if live.bundle, err = get(ctx, r.uncached, r.key(r.config.Objects.Bundle), &corev1.ConfigMap{}); err != nil {
		return objects{}, err
	}
	for _, name := range r.config.CRDs {
		crd, err := get(ctx, r.client, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		if err != nil {
			return objects{}, err
		}
		if crd == nil {
			continue
		}
		if c := crd.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
			live.trusted = append(live.trusted, c.Webhook.ClientConfig.CABundle)
		}
	}
	return live, nil
}

func (r *Reconciler) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.config.Namespace, Name: name}
}

// get returns an object, or nil if there is none.
func get[T client.Object](ctx context.Context, reader client.Reader, key client.ObjectKey, obj T) (T, error) {
	var none T
	if err := reader.Get(ctx, key, obj); err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return obj, nil
}

func (o objects) state() State {
	state := State{Signer: keyPair(o.signer), Serving: keyPair(o.serving), Trusted: o.trusted}
	if o.bundle != nil {
		state.Bundle = []byte(o.bundle.Data[names.KeyCABundle])
	}
	return state
}

func keyPair(secret *corev1.Secret) KeyPair {
	if secret == nil {
		return KeyPair{}
	}
	return KeyPair{Cert: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
}

// write writes what the plan changes: the CA before the bundle, because a CA whose
// key is lost would stay in the bundle until it expires.
func (r *Reconciler) write(ctx context.Context, live objects, plan Plan) error {
	if plan.Signer != nil {
		if err := r.writeSecret(ctx, r.object("Secret", r.config.Objects.Signer, live.owner), live.signer, *plan.Signer); err != nil {
			return err
		}
	}
	if live.bundle == nil || !bytes.Equal([]byte(live.bundle.Data[names.KeyCABundle]), plan.Bundle) {
		obj := r.object("ConfigMap", r.config.Objects.Bundle, live.owner)
		obj.Object["data"] = map[string]any{names.KeyCABundle: string(plan.Bundle)}
		if live.bundle != nil {
			obj.SetResourceVersion(live.bundle.ResourceVersion)
		}
		if err := r.apply(ctx, obj); err != nil {
			return err
		}
	}
	if plan.Serving != nil {
		return r.writeSecret(ctx, r.object("Secret", r.config.Objects.Serving, live.owner), live.serving, *plan.Serving)
	}
	return nil
}

// writeSecret replaces the Secret in the state that was read. The type of a Secret
// cannot be changed.
func (r *Reconciler) writeSecret(ctx context.Context, obj *unstructured.Unstructured, live *corev1.Secret, content KeyPair) error {
	obj.Object["type"] = string(corev1.SecretTypeTLS)
	obj.Object["data"] = map[string]any{
		corev1.TLSCertKey:       base64.StdEncoding.EncodeToString(content.Cert),
		corev1.TLSPrivateKeyKey: base64.StdEncoding.EncodeToString(content.Key),
	}
	switch {
	case live == nil:
	case live.Type == corev1.SecretTypeTLS:
		obj.SetResourceVersion(live.ResourceVersion)
	default:
		err := r.client.Delete(ctx, live, client.Preconditions{UID: &live.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("replace the Secret %s: %w", live.Name, err)
		}
	}
	return r.apply(ctx, obj)
}

func (r *Reconciler) object(kind, name string, owner *metav1.OwnerReference) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind,
		"metadata": map[string]any{"namespace": r.config.Namespace, "name": name},
	}}
	if owner != nil {
		obj.SetOwnerReferences([]metav1.OwnerReference{*owner})
	}
	return obj
}

// apply creates or changes an object by a patch, because RBAC can limit patch, and not
// create, to a name.
func (r *Reconciler) apply(ctx context.Context, obj *unstructured.Unstructured) error {
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}
