package addon

import (
	"context"
	"fmt"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// newHubCache returns a cache of the add-ons in the cluster's namespace and of their
// CSRs. It is not the manager's cache, whose sync all controllers wait for: a hub that
// does not serve add-ons, or does not let the agent list them, must not block the
// other controllers.
func newHubCache(mgr ctrl.Manager, cluster string) (cache.Cache, error) {
	own, err := labels.NewRequirement(names.LabelClusterName, selection.Equals, []string{cluster})
	if err != nil {
		return nil, fmt.Errorf("select the certificate requests of %s: %w", cluster, err)
	}
	addOns, err := labels.NewRequirement(names.LabelAddOnName, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select the certificate requests of add-ons: %w", err)
	}
	objects, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&addonv1beta1.ManagedClusterAddOn{}:         {Field: inNamespace(cluster)},
			&certificatesv1.CertificateSigningRequest{}: {Label: labels.NewSelector().Add(*own, *addOns), Transform: slimRequest},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to watch add-ons: %w", err)
	}
	return objects, nil
}

// startOnly is a cache that the manager starts without waiting for its sync.
type startOnly struct{ cache cache.Cache }

// Start implements manager.Runnable.
func (s startOnly) Start(ctx context.Context) error { return s.cache.Start(ctx) }

// inNamespace selects one namespace. The namespaces of cache.Config leak a goroutine
// when the cache stops.
func inNamespace(namespace string) fields.Selector {
	return fields.OneTermEqualSelector("metadata.namespace", namespace)
}

// slimRequest drops everything but metadata of a CSR, which drivers read from the API
// server. A metadata watch would leak a goroutine.
func slimRequest(object any) (any, error) {
	request, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return object, nil
	}
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
		Name: request.Name, UID: request.UID, ResourceVersion: request.ResourceVersion, Labels: request.Labels,
	}}, nil
}

// watches fill the queue. Unlike the sources of controller-runtime they do not have to
// sync in time.
type watches struct {
	reconciler *Reconciler
	hub        cache.Cache

	mu       sync.Mutex
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
	addOns   cache.Informer
	requests cache.Informer
}

// Start implements source.Source.
func (w *watches) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	addOns, err := w.hub.GetInformer(ctx, &addonv1beta1.ManagedClusterAddOn{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch ManagedClusterAddOns: %w", err)
	}
	if _, err := addOns.AddEventHandler(onChange(func(o client.Object) { w.enqueue(o.GetName()) })); err != nil {
		return fmt.Errorf("watch ManagedClusterAddOns: %w", err)
	}
	w.addOns = addOns
	return w.reconciler.secrets.watch(ctx, w.enqueue)
}

func (w *watches) synced() bool { return w.addOns.HasSynced() }

// enqueue requests the reconciliation of an add-on.
func (w *watches) enqueue(addOn string) {
	if addOn == "" {
		return
	}
	w.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: w.reconciler.config.Cluster, Name: addOn}})
}

// follow watches the object that a step waits for and wakes its add-on on a change.
// Add-ons are always watched.
func (w *watches) follow(ctx context.Context, object client.Object) error {
	if _, ok := object.(*certificatesv1.CertificateSigningRequest); !ok {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.requests != nil {
		return nil
	}
	requests, err := w.hub.GetInformer(ctx, &certificatesv1.CertificateSigningRequest{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch CertificateSigningRequests: %w", err)
	}
	if _, err := requests.AddEventHandler(onChange(func(o client.Object) {
		addOn := o.GetLabels()[names.LabelAddOnName]
		w.reconciler.memory.wake(addOn)
		w.enqueue(addOn)
	})); err != nil {
		return fmt.Errorf("watch CertificateSigningRequests: %w", err)
	}
	w.requests = requests
	return nil
}

// onChange calls changed with every object that is created, updated or deleted.
func onChange(changed func(client.Object)) toolscache.ResourceEventHandler {
	notify := func(object any) {
		if lost, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = lost.Obj
		}
		if o, ok := object.(client.Object); ok {
			changed(o)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: notify,
		UpdateFunc: func(before, after any) {
			old, okBefore := before.(client.Object)
			now, okAfter := after.(client.Object)
			if !okBefore || !okAfter || old.GetResourceVersion() != now.GetResourceVersion() {
				notify(before) // The label or annotation with the add-on may have changed.
				notify(after)
			}
		},
		DeleteFunc: notify,
	}
}
