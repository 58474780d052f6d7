package serviceaccount

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/owner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Owner is the field manager of everything this controller writes.
const Owner client.FieldOwner = "ocm.pullsecret.serviceaccount"

// takenDelay is how long a ServiceAccount waits whose pull secret's name is taken:
// Secrets without our label are not watched.
const takenDelay = 10 * time.Minute

// Hosts is the list of registry hosts.
type Hosts interface {
	List() []content.Host
}

// Usage knows which ServiceAccounts are used.
type Usage interface {
	// Uses reports whether there is a workload with a ServiceAccount.
	Uses(ctx context.Context, account types.NamespacedName) (bool, error)
	// Sources make requests for ServiceAccounts that may be used from now on.
	Sources() []source.Source
}

// Reconciler gives ServiceAccounts their pull secrets.
type Reconciler struct {
	// Client writes, and reads from the cache, which has Summaries for data.
	Client client.Client
	// Live reads from the API server what the cache leaves out.
	Live client.Reader
	// Clock is the time.
	Clock clock.PassiveClock
	// Selection says which ServiceAccounts have one.
	Selection Selection
	// Namespaced leaves the namespaces themselves unread: without their labels and
	// annotations, no permission beyond them is needed.
	Namespaced bool
	// Usage, if it is not nil, says which of them need one. A pull secret that was
	// needed once stays: the next pod needs it as it is created.
	Usage Usage
	// Hosts are the registries; without any, nothing is made.
	Hosts Hosts
	// Form is the form of pull secrets.
	Form owner.Form
	// Format is how pull secrets store their tokens.
	Format content.Format
	// Attach lists the pull secrets in imagePullSecrets. Otherwise no ServiceAccount is
	// changed.
	Attach bool
	// Events says on ServiceAccounts what is in the way.
	Events events.EventRecorder
	// Metrics shows the same.
	Metrics *Metrics

	contention *contention
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	defer r.Metrics.observe(r.contention)
	var account corev1.ServiceAccount
	if err := r.Client.Get(ctx, req.NamespacedName, &account); err != nil {
		r.contention.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err) // Its Secret is an orphan, which package token deletes.
	}
	namespace, err := r.namespace(ctx, req.Namespace)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // Its event brings the ServiceAccount back.
	}
	if account.DeletionTimestamp != nil || namespace.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if !r.Selection.Selects(&account, namespace) {
		return ctrl.Result{}, settled(r.remove(ctx, &account))
	}
	err = r.ensure(ctx, &account)
	if errors.Is(err, errTaken) {
		r.warn(&account, names.ReasonPullSecretNameTaken, err.Error())
		return ctrl.Result{RequeueAfter: takenDelay}, nil
	}
	return ctrl.Result{}, settled(err)
}

// namespace returns the metadata of a namespace.
func (r *Reconciler) namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	namespace := &metav1.PartialObjectMetadata{}
	if r.Namespaced {
		return namespace, nil
	}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	return namespace, err
}

// ensure makes the pull secret, and lists it once it can be used.
func (r *Reconciler) ensure(ctx context.Context, account *corev1.ServiceAccount) error {
	if len(r.Hosts.List()) == 0 { // Paused; a change of the list wakes everything.
		return nil
	}
	secret, err := r.ensureSecret(ctx, account)
	if err != nil || secret == nil || !r.Attach {
		return err
	}
	want, err := r.wanted(ctx, account, secret)
	if err != nil {
		return err
	}
	return r.attach(ctx, account, want, secret.Name)
}

// remove takes away what a ServiceAccount got before it was opted out: first the
// entry, because pods are created with it. A legacy pull secret was not made here.
func (r *Reconciler) remove(ctx context.Context, account *corev1.ServiceAccount) error {
	r.contention.forget(client.ObjectKeyFromObject(account))
	name := r.Form.Metadata(account).Name
	found, err := r.find(ctx, account, name)
	if err != nil {
		return err
	}
	if found != nil {
		if _, legacy := owner.LegacyToken(found); legacy {
			return nil
		}
		name = found.Name
	}
	want := account.DeepCopy()
	r.unlist(want, name)
	if want.Annotations[r.Form.Pointer()] == name {
		delete(want.Annotations, r.Form.Pointer())
	}
	if _, err := r.write(ctx, account, want); err != nil {
		return err
	}
	if found == nil || !r.Form.Complete(found, account) {
		return nil
	}
	return r.deleteSecret(ctx, found)
}

// settled ignores errors that only say that the ServiceAccount changed or that its
// namespace is terminating: events report both.
func settled(err error) error {
	if apierrors.IsConflict(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

func (r *Reconciler) warn(account *corev1.ServiceAccount, reason, message string) {
	ref := metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}
	r.Events.Eventf(owner.Reference(account.Namespace, ref), nil, corev1.EventTypeWarning, reason, "AttachPullSecret", "%s", message)
}
