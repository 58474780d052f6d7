package addon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// leaseGrace is how long an add-on stays available without a renewal of its lease:
// five times the renewal period.
const leaseGrace = 5 * 60 * time.Second

// setAvailability sets the availability of an add-on from its lease. A renewal causes
// no reconciliation; the next one is at the end of the grace period.
func (r *Reconciler) setAvailability(ctx context.Context, s *scope) {
	if s.addOn.Status.HealthCheck.Mode == addonv1beta1.HealthCheckModeCustomized {
		return
	}
	lease, err := r.leases.get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.addOn.Name}, r.leaseChanged)
	if err != nil { // The watch has just begun, or fails.
		s.memory.leaseMisses++
		s.after(credential.Backoff{First: unsynced, Most: blindAfter}.Delay(s.memory.leaseMisses, s.addOn.Name))
		return
	}
	s.memory.leaseMisses = 0
	c := metav1.Condition{Type: addonv1beta1.ManagedClusterAddOnConditionAvailable}
	switch {
	case lease == nil:
		c.Status, c.Reason = metav1.ConditionUnknown, addonv1beta1.AddonAvailableReasonLeaseLeaseNotFound
		c.Message = fmt.Sprintf(names.MessageAddOnUnknown, s.addOn.Name)
	case renewed(lease, s.now):
		c.Status, c.Reason = metav1.ConditionTrue, addonv1beta1.AddonAvailableReasonLeaseLeaseUpdated
		c.Message = fmt.Sprintf(names.MessageAddOnAvailable, s.addOn.Name)
		s.after(lease.Spec.RenewTime.Add(leaseGrace).Sub(s.now))
	default:
		c.Status, c.Reason = metav1.ConditionFalse, addonv1beta1.AddonAvailableReasonLeaseUpdateStopped
		c.Message = fmt.Sprintf(names.MessageAddOnUnavailable, s.addOn.Name)
	}
	s.set(c)
}

func renewed(lease *coordinationv1.Lease, now time.Time) bool {
	return lease.Spec.RenewTime != nil && now.Before(lease.Spec.RenewTime.Add(leaseGrace))
}

// leaseChanged enqueues an add-on if the change of its lease can change its
// availability before the next scheduled reconciliation. A renewal in time cannot,
// unless its time moves back.
func (r *Reconciler) leaseChanged(name string, old, changed *coordinationv1.Lease) {
	now := r.config.Clock.Now()
	if old != nil && changed != nil && renewed(old, now) && renewed(changed, now) && !changed.Spec.RenewTime.Before(old.Spec.RenewTime) {
		return
	}
	if r.memory.knows(name) {
		r.watches.enqueue(name)
	}
}

// leases watches the leases of install namespaces only, because a cluster has many
// others.
type leases struct {
	managed cluster.Cluster
	starts  chan *leaseCache

	mu          sync.Mutex
	byNamespace map[string]*leaseCache
}

func newLeases(managed cluster.Cluster) *leases {
	return &leases{managed: managed, starts: make(chan *leaseCache), byNamespace: map[string]*leaseCache{}}
}

type leaseCache struct {
	cache.Cache

	informer cache.Informer
}

// Start implements manager.Runnable: it runs the watches.
func (l *leases) Start(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-l.starts:
			running.Go(func() { _ = c.Start(ctx) }) // It fails only when started twice.
		}
	}
}

// errUnsynced is returned until the cache of leases is filled.
var errUnsynced = errors.New("the cache of leases is not synced")

// get returns a lease from the cache, nil if there is none. The first call for a
// namespace starts its watch, which calls changed.
func (l *leases) get(ctx context.Context, key client.ObjectKey, changed leaseHandler) (*coordinationv1.Lease, error) {
	c, err := l.watch(ctx, key.Namespace, changed)
	if err != nil {
		return nil, err
	}
	if !c.informer.HasSynced() {
		return nil, errUnsynced
	}
	var lease coordinationv1.Lease
	err = c.Get(ctx, key, &lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the lease of add-on %s: %w", key.Name, err)
	}
	return &lease, nil
}

func (l *leases) watch(ctx context.Context, namespace string, changed leaseHandler) (*leaseCache, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.byNamespace[namespace]; ok {
		return c, nil
	}
	objects, err := cache.New(l.managed.GetConfig(), cache.Options{
		HTTPClient:           l.managed.GetHTTPClient(),
		Scheme:               l.managed.GetScheme(),
		Mapper:               l.managed.GetRESTMapper(),
		DefaultFieldSelector: inNamespace(namespace),
		DefaultTransform:     slimLease,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to watch the leases in namespace %s: %w", namespace, err)
	}
	c := &leaseCache{Cache: objects}
	if c.informer, err = objects.GetInformer(ctx, &coordinationv1.Lease{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("watch the leases in namespace %s: %w", namespace, err)
	}
	if _, err := c.informer.AddEventHandler(changed.events()); err != nil {
		return nil, fmt.Errorf("watch the leases in namespace %s: %w", namespace, err)
	}
	select {
	case l.starts <- c:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l.byNamespace[namespace] = c
	return c, nil
}

// leaseHandler is called with the name of a lease that changed, the lease before, nil
// if it was created, and the lease now, nil if it was deleted.
type leaseHandler func(name string, old, changed *coordinationv1.Lease)

func (h leaseHandler) events() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if lease, ok := object.(*coordinationv1.Lease); ok {
				h(lease.Name, nil, lease)
			}
		},
		UpdateFunc: func(before, after any) {
			old, okBefore := before.(*coordinationv1.Lease)
			lease, okAfter := after.(*coordinationv1.Lease)
			if okBefore && okAfter {
				h(lease.Name, old, lease)
			}
		},
		DeleteFunc: func(object any) {
			if lost, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = lost.Obj
			}
			if lease, ok := object.(*coordinationv1.Lease); ok {
				h(lease.Name, lease, nil)
			}
		},
	}
}

// slimLease drops the fields of a lease that the controller does not read.
func slimLease(object any) (any, error) {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return object, nil
	}
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name, UID: lease.UID, ResourceVersion: lease.ResourceVersion},
		Spec:       coordinationv1.LeaseSpec{RenewTime: lease.Spec.RenewTime},
	}, nil
}
