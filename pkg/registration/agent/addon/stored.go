package addon

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// rotation is the reason for the replacement of a valid credential.
const rotation credential.Reason = "RotationRequested"

// rotateTolerance is the tolerated difference between the clock of the requester of a
// rotation and the agent's. A later time is a rotation in the future.
const rotateTolerance = 10 * time.Minute

// stored is the credential in a Secret.
type stored struct {
	secret *corev1.Secret
	data   driver.Data
	facts  credential.Facts
	// obtained is when it was obtained, if known.
	obtained time.Time
	// rotateAt is when a requested rotation is due.
	rotateAt time.Time
}

// evaluate inspects a Secret and returns whether a new credential is needed.
func (r *Reconciler) evaluate(s *scope, it *item, secret *corev1.Secret) (stored, credential.Need, bool) {
	h := stored{secret: secret}
	if secret != nil {
		h.data = secret.Data
	}
	h.facts.Validity, h.facts.Problem = it.driver.Inspect(h.data)
	if h.facts.Problem == nil {
		h.obtained = obtained(secret, h.facts.Validity)
		h.facts.RenewAt = credential.RenewObtained(h.facts.Validity, it.driver.Renewal(), string(s.addOn.UID)+"/"+it.secret.Name, h.obtained)
		h.rotateAt = rotateAt(s, h)
	}
	if need, due := credential.Due().Evaluate(h.facts, s.now); due {
		return h, need, true
	}
	if !h.rotateAt.IsZero() && !h.rotateAt.After(s.now.Add(rotateTolerance)) {
		return h, credential.Need{Reason: rotation, Message: "a rotation of credentials issued before " + credential.Timestamp(h.rotateAt) + " was requested"}, true
	}
	return h, credential.Need{}, false
}

// usable reports whether the credential can be used until it is replaced.
func (r *Reconciler) usable(s *scope, h stored) bool {
	_, unusable := credential.Unusable().Evaluate(h.facts, s.now)
	return !unusable
}

// obtained returns when a credential was obtained: the recorded time if it is
// plausible, otherwise the begin of its validity.
func obtained(secret *corev1.Secret, v credential.Validity) time.Time {
	recorded, err := time.Parse(time.RFC3339, secret.Annotations[names.AnnotationCredentialObtained])
	if err != nil || recorded.Before(v.NotBefore.Add(-time.Second)) || !v.Unlimited && recorded.After(v.NotAfter) {
		return v.NotBefore
	}
	return recorded
}

// rotateAt returns the time in the add-on's annotation, zero if it does not apply to
// this credential. The Secret records the value that it was rotated for, so that one
// request causes one rotation. A credential without this record that is slightly newer
// than the request is rotated too, because clocks differ.
func rotateAt(s *scope, h stored) time.Time {
	value := s.addOn.Annotations[names.AnnotationRotate]
	at, err := time.Parse(time.RFC3339, value)
	if err != nil || h.secret.Annotations[names.AnnotationCredentialRotation] == value || h.obtained.After(at.Add(rotateTolerance)) {
		return time.Time{}
	}
	return at
}

// ensureSecret repairs the Secret of a valid credential: the kubeconfig, the cluster's
// name and the agent's label.
func (r *Reconciler) ensureSecret(ctx context.Context, it *item, h stored) error {
	data := maps.Clone(h.data)
	if err := r.addKubeconfig(it, data); err != nil {
		return err
	}
	if maps.EqualFunc(data, h.data, bytes.Equal) && r.secrets.marked(h.secret) {
		return nil
	}
	return r.secrets.replace(ctx, h.secret, it, data, nil)
}

// addKubeconfig adds the cluster's name and the kubeconfig to a credential.
func (r *Reconciler) addKubeconfig(it *item, data driver.Data) error {
	data[names.KeyClusterName] = []byte(r.config.Cluster)
	if it.signer != "" {
		return nil
	}
	encoded, err := r.config.Hub.Encode(it.driver.User())
	if err != nil {
		return err
	}
	data[names.KeyKubeconfig] = encoded
	return nil
}

// store writes an issued credential to the Secret, and then deletes the pending data.
func (r *Reconciler) store(ctx context.Context, s *scope, it *item, h stored, issued *driver.Issued, need credential.Need) error {
	data := maps.Clone(issued.Data)
	if err := r.addKubeconfig(it, data); err != nil {
		return err
	}
	notes := map[string]string{
		names.AnnotationCredentialAddOn:    s.addOn.Name,
		names.AnnotationCredentialObtained: credential.Timestamp(r.config.Clock.Now()),
	}
	if value := s.addOn.Annotations[names.AnnotationRotate]; value != "" {
		notes[names.AnnotationCredentialRotation] = value
	}
	if err := r.secrets.replace(ctx, h.secret, it, data, notes); err != nil {
		if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			r.memory.forgetNamespace(it.secret.Namespace)
		}
		return err
	}
	r.events.renewed(it, issued, need)
	return r.dropPending(ctx, s, it)
}

// namespaceMissing returns the step that waits for the install namespace, which the
// add-on's manifests create.
func (r *Reconciler) namespaceMissing(ctx context.Context, name string) (driver.Step, error) {
	if r.memory.namespaceSeen(name) {
		return driver.Step{}, nil
	}
	exists, err := r.namespaceExists(ctx, name)
	if err != nil {
		return driver.Step{}, err
	}
	if !exists {
		return driver.Step{After: namespaceRecheck, Waiting: driver.Waiting{Reason: names.ReasonInstallNamespaceMissing, Message: fmt.Sprintf(
			"waiting for the install namespace %s on the managed cluster", name)}}, nil
	}
	r.memory.sawNamespace(name)
	return driver.Step{}, nil
}

// namespaceExists reports whether a namespace exists and is not being deleted.
func (r *Reconciler) namespaceExists(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	namespace := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	err := r.config.Managed.GetAPIReader().Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return namespace.DeletionTimestamp.IsZero(), nil
}

// namespaceRecheck is how often a missing namespace is read again.
const namespaceRecheck = 10 * time.Second

// validateSecret returns why no credential can be stored in a Secret.
func (r *Reconciler) validateSecret(key client.ObjectKey) error {
	if key.Namespace == r.config.Namespace && slices.Contains(r.config.Reserved, key.Name) {
		return fmt.Errorf("the Secret %s in namespace %s is reserved for the agent; install the add-on in another namespace", key.Name, key.Namespace)
	}
	return nil
}
