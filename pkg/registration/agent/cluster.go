package agent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/status"
)

const (
	probeTimeout = 10 * time.Second
	// claimsPatience is how long the first status waits for the cache of claims.
	claimsPatience = 5 * time.Second
)

// CacheOptions returns the cache options of the managed cluster's manager for an agent
// in namespace: its own Secrets, and nodes with the fields that are summed up.
func CacheOptions(namespace string) cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{namespace: {}}},
		&corev1.Node{}:   {Transform: slimNode},
	}}
}

// slimNode drops the fields that the agent does not read; images and conditions are
// most of a Node.
func slimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Spec:       corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable},
		Status:     corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}, nil
}

// watchNodes signals changes of the fields that the status sums up. Heartbeats of
// kubelets do not change them.
func (a *Agent) watchNodes(mgr ctrl.Manager) error {
	changed := predicate.Funcs{UpdateFunc: watch.Updates(func(before, after *corev1.Node) bool {
		return before.Spec.Unschedulable != after.Spec.Unschedulable || !apiequality.Semantic.DeepEqual(before.Status, after.Status)
	})}
	signal := reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		a.facts.signal()
		return ctrl.Result{}, nil
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.nodes").
		For(&corev1.Node{}, builder.WithPredicates(changed)).
		Complete(signal)
}

// newSources reads the managed cluster for the status.
func (a *Agent) newSources(mgr ctrl.Manager) (status.Sources, error) {
	api, err := probe(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("prepare the probe of the managed cluster: %w", err)
	}
	sources := &status.ManagedCluster{REST: api, Reader: mgr.GetCache()}
	if a.config.Claims != nil {
		claims := &claimWatch{mgr: mgr, changed: a.facts.signal}
		sources.HasClaims, sources.Rules = claims.ready, *a.config.Claims
	}
	return sources, nil
}

func probe(config *rest.Config) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Timeout = probeTimeout
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

// claimWatch watches ClusterClaims as soon as their CRD is installed. A cache with a
// kind that is not served would never sync.
type claimWatch struct {
	mgr      ctrl.Manager
	changed  func()
	informer cache.Informer
	waited   bool
}

// ready reports whether claims can be read. It is called by the one worker of
// the status reconciler.
func (w *claimWatch) ready(ctx context.Context) bool {
	if w.informer == nil && !w.watch(ctx) {
		return false
	}
	if !w.waited {
		w.waited = true
		ctx, cancel := context.WithTimeout(ctx, claimsPatience)
		defer cancel()
		toolscache.WaitForCacheSync(ctx.Done(), w.informer.HasSynced)
	}
	return w.informer.HasSynced()
}

func (w *claimWatch) watch(ctx context.Context) bool {
	kind := schema.GroupVersion(clusterv1alpha1.GroupVersion).WithKind("ClusterClaim")
	if _, err := w.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return false
	}
	informer, err := w.mgr.GetCache().GetInformer(ctx, &clusterv1alpha1.ClusterClaim{}, cache.BlockUntilSynced(false))
	if err != nil {
		return false
	}
	changed := func(any) { w.changed() }
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(_, after any) { changed(after) },
	}); err != nil {
		return false
	}
	w.informer = informer
	return true
}
