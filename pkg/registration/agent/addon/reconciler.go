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
	// unsynced is the retry interval while a cache is being filled.
	unsynced = 100 * time.Millisecond
	// blindAfter is how long a cache may be unsynced before that is reported.
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
	events  recorder
	log     logr.Logger
	began   time.Time
}

// scope is the state of one reconciliation of one add-on.
type scope struct {
	now time.Time
	// addOn is the add-on as read, want as it should be.
	addOn, want *addonv1beta1.ManagedClusterAddOn
	// namespace is the install namespace.
	namespace string
	// items are the registrations of a supported type.
	items []*item
	// secrets are the agent's Secrets of the add-on, by key.
	secrets map[client.ObjectKey]*corev1.Secret
	memory  *addOnMemory
	// again is when to reconcile again, zero for never.
	again time.Duration
}

// after requests another reconciliation in d or earlier.
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
		// The agent may not list add-ons. The informer adds them when it may.
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
	s := r.scope(addOn)
	if s.secrets, err = r.secrets.of(ctx, addOn.Name); err != nil {
		return ctrl.Result{}, err
	}
	s.items = r.items(s)
	return r.settle(r.register(ctx, s))
}

// settle returns the result of a reconciliation. A conflict is retried and is not an
// error.
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

// register reconciles an existing add-on, also one that is being deleted, whose agent
// may need its credential to clean up. The driver is set in a write of its own; the
// event of that write triggers the rest.
func (r *Reconciler) register(ctx context.Context, s *scope) (*scope, error) {
	if s.memory.stale(s.addOn) {
		return s, nil // The event of the last write follows.
	}
	if host := hostedOn(s.addOn, r.config.Cluster); host != "" {
		r.disown(s, host)
		return s, r.write(ctx, s)
	}
	if declareDriver(s) {
		r.setSwitchConditions(s)
		_, _ = r.leases.watch(ctx, s.namespace, r.leaseChanged) // Started early; setAvailability retries.
		return s, r.write(ctx, s)
	}
	declareSubjects(s)
	for _, it := range s.items {
		if err := r.ensureCredential(ctx, s, it); err != nil {
			return s, err
		}
	}
	if err := r.sweep(ctx, s); err != nil {
		return s, err
	}
	r.setAvailability(ctx, s)
	r.setCredentialConditions(s)
	return s, r.write(ctx, s)
}

func (r *Reconciler) scope(addOn *addonv1beta1.ManagedClusterAddOn) *scope {
	return &scope{
		now: r.config.Clock.Now(), addOn: addOn, want: addOn.DeepCopy(),
		namespace: installNamespace(addOn), memory: r.memory.of(addOn.Name),
	}
}

// forget removes the Secrets, the memory and the metrics of an add-on that is gone.
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

// gone reads from the hub whether an add-on is gone, before its credentials are
// deleted. A hub that does not serve add-ons at the moment returns another status. A
// forbidden read means that it is gone: a hub deletes the add-ons of a cluster before
// it removes the permissions of its agent.
func (r *Reconciler) gone(ctx context.Context, key client.ObjectKey) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := r.config.Live.Get(ctx, key, &addonv1beta1.ManagedClusterAddOn{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get add-on %s from the hub: %w", key.Name, err)
	}
	return false, nil
}
