package addon

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

const (
	// unsynced is when to look again for a cache that is being filled.
	unsynced = 100 * time.Millisecond
	// blindAfter is how long filling a cache may take before it is told.
	blindAfter = 10 * time.Second
)

// Reconciler registers the add-ons of one cluster.
type Reconciler struct {
	config Config
	// hub reads add-ons from a cache.
	hub     client.Reader
	secrets *secretCache
	leases  *leases
	watches *watches
	memory  *memory
	tell    teller
	log     logr.Logger
	began   time.Time
}

// scope is one look at one add-on.
type scope struct {
	now time.Time
	// addOn is the add-on as read, want the one as it is to be written.
	addOn, want *addonv1beta1.ManagedClusterAddOn
	// namespace is where the add-on is installed.
	namespace string
	// items are its registrations that can be handled.
	items []*item
	// secrets are the Secrets that the agent keeps for the add-on, by key.
	secrets map[client.ObjectKey]*corev1.Secret
	memory  *addOnMemory
	// again is when to look again, zero for never.
	again time.Duration
}

// after asks for another look in d, or earlier if somebody else does.
func (s *scope) after(d time.Duration) {
	d = max(d, time.Millisecond)
	if s.again == 0 || d < s.again {
		s.again = d
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	blind := !r.secrets.synced()
	young := r.config.Clock.Since(r.began) < blindAfter
	switch {
	case young && (blind || !r.watches.synced()):
		return ctrl.Result{RequeueAfter: unsynced}, nil
	case !r.watches.synced():
		// The hub does not let us see add-ons. When it does, that is an event.
		return ctrl.Result{RequeueAfter: blindAfter}, nil
	}
	addOn := &addonv1beta1.ManagedClusterAddOn{}
	err := r.hub.Get(ctx, req.NamespacedName, addOn)
	if apierrors.IsNotFound(err) {
		if blind {
			return ctrl.Result{RequeueAfter: blindAfter}, nil
		}
		return r.forget(ctx, req.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read the add-on: %w", err)
	}
	if blind {
		s := r.scope(addOn)
		s.items = r.items(s)
		r.blind(s)
		s.after(blindAfter)
		return r.settle(s, r.write(ctx, s))
	}
	s, err := r.look(ctx, addOn)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.settle(r.register(ctx, s))
}

// settle turns what the phases found into a result. Somebody who was faster
// than us is no error: the watch tells what was written.
func (r *Reconciler) settle(s *scope, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: firstRetry}, nil
	}
	if err != nil {
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			return ctrl.Result{RequeueAfter: max(time.Duration(seconds)*time.Second, firstRetry)}, nil
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.again}, nil
}

// register is what is done for an add-on that is there, phase by phase; one that
// is being deleted is, and its agent may need its credential to clean up. The
// driver is declared in a write of its own, and everything else follows when
// that is seen.
func (r *Reconciler) register(ctx context.Context, s *scope) (*scope, error) {
	if s.memory.stale(s.addOn) {
		return s, nil // What was written is on its way.
	}
	if host := hostedOn(s.addOn, r.config.Cluster); host != "" {
		r.disown(s, host)
		return s, r.write(ctx, s)
	}
	if declareDriver(s) {
		r.tellSwitch(s)
		r.leases.prepare(ctx, s.namespace, r.leaseChanged)
		return s, r.write(ctx, s)
	}
	declareSubjects(s)
	for _, it := range s.items {
		if err := r.keep(ctx, s, it); err != nil {
			return s, err
		}
	}
	if err := r.sweep(ctx, s); err != nil {
		return s, err
	}
	r.judgeLease(ctx, s)
	r.tellCredentials(s)
	return s, r.write(ctx, s)
}

// look gathers what is known about an add-on.
func (r *Reconciler) look(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (*scope, error) {
	secrets, err := r.secrets.of(ctx, addOn.Name)
	if err != nil {
		return nil, err
	}
	s := r.scope(addOn)
	s.secrets = secrets
	s.items = r.items(s)
	return s, nil
}

func (r *Reconciler) scope(addOn *addonv1beta1.ManagedClusterAddOn) *scope {
	return &scope{
		now: r.config.Clock.Now(), addOn: addOn, want: addOn.DeepCopy(),
		namespace: installNamespace(addOn), memory: r.memory.of(addOn.Name),
	}
}

// forget removes what is kept for an add-on that is gone.
func (r *Reconciler) forget(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	secrets, err := r.secrets.of(ctx, key.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(secrets) > 0 {
		gone, err := r.gone(ctx, key)
		if err != nil || !gone {
			return ctrl.Result{}, err
		}
	}
	for _, secret := range secrets {
		if err := r.drop(ctx, secret); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.memory.drop(key.Name)
	r.config.Metrics.forget(key.Name)
	return ctrl.Result{}, nil
}

// gone asks the hub itself whether an add-on is gone, before its credentials
// are deleted. A hub that does not serve add-ons at this moment does not say so.
// One that no longer answers this cluster said it before: with the cluster its
// add-ons were deleted, and then its rights.
func (r *Reconciler) gone(ctx context.Context, key client.ObjectKey) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := r.config.Live.Get(ctx, key, &addonv1beta1.ManagedClusterAddOn{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask the hub for add-on %s: %w", key.Name, err)
	}
	return false, nil
}
