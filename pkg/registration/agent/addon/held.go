package addon

import (
	"bytes"
	"context"
	"errors"
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

// rotation is why a credential is replaced that could go on being used.
const rotation credential.Reason = "RotationRequested"

// rotateTolerance is how far the clock of whoever asked for a rotation may be
// from ours, either way. A later time is waited for.
const rotateTolerance = 10 * time.Minute

// held is the credential in a Secret.
type held struct {
	secret *corev1.Secret
	data   driver.Data
	facts  credential.Facts
	// obtained is when it was obtained, as far as that is known.
	obtained time.Time
	// rotateAt is when it is to be replaced because somebody asked for that.
	rotateAt time.Time
}

// judge looks at what a Secret holds and says whether a new credential is needed.
func (r *Reconciler) judge(s *scope, it *item, secret *corev1.Secret) (held, credential.Need, bool) {
	h := held{secret: secret}
	if secret != nil {
		h.data = secret.Data
	}
	h.facts.Validity, h.facts.Problem = it.driver.Inspect(h.data)
	if h.facts.Problem == nil {
		h.obtained = obtained(secret, h.facts.Validity)
		h.facts.RenewAt = credential.RenewObtained(h.facts.Validity, it.driver.Renewal(), string(s.addOn.UID)+"/"+it.secret.Name, h.obtained)
		h.rotateAt = rotateAt(s, h)
	}
	if need, due := credential.Due().Judge(h.facts, s.now); due {
		return h, need, true
	}
	if !h.rotateAt.IsZero() && !h.rotateAt.After(s.now.Add(rotateTolerance)) {
		return h, credential.Need{Reason: rotation, Message: "a credential issued before " + stamp(h.rotateAt) + " is to be replaced"}, true
	}
	return h, credential.Need{}, false
}

// usable reports whether the credential can be used until a new one is there.
func (r *Reconciler) usable(s *scope, h held) bool {
	_, unusable := credential.Unusable().Judge(h.facts, s.now)
	return !unusable
}

// obtained is when a credential was obtained: as it was noted, if that can be,
// else when its life began.
func obtained(secret *corev1.Secret, v credential.Validity) time.Time {
	noted, err := time.Parse(time.RFC3339, secret.Annotations[names.AnnotationCredentialObtained])
	if err != nil || noted.Before(v.NotBefore.Add(-time.Second)) || !v.Unlimited && noted.After(v.NotAfter) {
		return v.NotBefore
	}
	return noted
}

// rotateAt is the time that the add-on's annotation gives, zero if it asks for
// nothing of this credential. The value that a credential answers is noted with
// it, so that one request is answered once. A credential without that note that
// seems a little newer than the request may be older: clocks differ.
func rotateAt(s *scope, h held) time.Time {
	value := s.addOn.Annotations[names.AnnotationRotate]
	at, err := time.Parse(time.RFC3339, value)
	if err != nil || h.secret.Annotations[names.AnnotationCredentialRotation] == value || h.obtained.After(at.Add(rotateTolerance)) {
		return time.Time{}
	}
	return at
}

// tend repairs what surrounds a good credential in its Secret: the kubeconfig,
// the cluster's name and the agent's mark.
func (r *Reconciler) tend(ctx context.Context, it *item, h held) error {
	data := maps.Clone(h.data)
	if err := r.surround(it, data); err != nil {
		return err
	}
	if maps.EqualFunc(data, h.data, bytes.Equal) && r.secrets.marked(h.secret) {
		return nil
	}
	return r.secrets.replace(ctx, h.secret, it, data, nil)
}

// surround adds to a credential what its Secret has beside it.
func (r *Reconciler) surround(it *item, data driver.Data) error {
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

// store replaces what the Secret holds by an issued credential, in one write,
// and only then forgets the request.
func (r *Reconciler) store(ctx context.Context, s *scope, it *item, h held, issued *driver.Issued, need credential.Need) error {
	data := maps.Clone(issued.Data)
	if err := r.surround(it, data); err != nil {
		return err
	}
	notes := map[string]string{
		names.AnnotationCredentialAddOn:    s.addOn.Name,
		names.AnnotationCredentialObtained: stamp(r.config.Clock.Now()),
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
	r.tell.renewed(it, issued, need)
	return r.dropPending(ctx, s, it)
}

// namespaceMissing is what to wait for while there is no install namespace:
// the add-on's own manifests bring it.
func (r *Reconciler) namespaceMissing(ctx context.Context, name string) (driver.Step, error) {
	if r.memory.namespaceSeen(name) {
		return driver.Step{}, nil
	}
	there, err := r.namespaceExists(ctx, name)
	if err != nil {
		return driver.Step{}, err
	}
	if !there {
		return driver.Step{After: namespaceRecheck, Waiting: driver.Waiting{Reason: names.ReasonInstallNamespaceMissing, Message: fmt.Sprintf(
			"waiting for namespace %s on the managed cluster, where the add-on's agent is to be installed", name)}}, nil
	}
	r.memory.sawNamespace(name)
	return driver.Step{}, nil
}

// namespaceExists reports whether a namespace is there to stay.
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

// namespaceRecheck is how often a missing namespace is looked for.
const namespaceRecheck = 10 * time.Second

// errReserved says that an add-on's Secret would be one that is not for add-ons.
var errReserved = errors.New("the Secret is not one for add-ons")

// mayKeep reports why no credential can be kept in a Secret.
func (r *Reconciler) mayKeep(key client.ObjectKey) error {
	if key.Namespace == r.config.Namespace && slices.Contains(r.config.Reserved, key.Name) {
		return fmt.Errorf("%w: Secret %s in namespace %s is the agent's own; install the add-on in another namespace", errReserved, key.Name, key.Namespace)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
