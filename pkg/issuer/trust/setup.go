package trust

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Config configures the controller.
type Config struct {
	// Clock dates conditions.
	Clock clock.PassiveClock
	// Metrics receives the metrics.
	Metrics prometheus.Registerer
}

// byThumbprint is the index of ConfigMaps by the thumbprints of their keys.
const byThumbprint = "thumbprint"

// CacheObjects are the objects that the manager's cache needs in addition to
// ManagedClusters and the labelled namespaces of clusters: one ConfigMap of each
// cluster that publishes.
func CacheObjects() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {
			Field:     fields.OneTermEqualSelector("metadata.name", names.IssuerConfigMap),
			Transform: cache.TransformStripManagedFields(),
		},
	}
}

// Setup adds the controller to mgr, whose cache has CacheObjects.
func Setup(ctx context.Context, mgr ctrl.Manager, config Config) error {
	index := func(object client.Object) []string {
		if m, ok := object.(*corev1.ConfigMap); ok {
			return keytrust.Thumbprints(m.Data)
		}
		return nil
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, byThumbprint, index); err != nil {
		return fmt.Errorf("index keys: %w", err)
	}
	r := &reconciler{client: mgr.GetClient(), clock: config.Clock, metrics: newMetrics(config.Metrics)}
	return ctrl.NewControllerManagedBy(mgr).
		Named("issuer.trust").
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.affectedByCluster), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return condition(e.Object) != nil },
			UpdateFunc: concerns,
		})).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.affected)).
		Complete(r)
}

// affected are the cluster of a ConfigMap and all that share a key with it.
func (r *reconciler) affected(ctx context.Context, object client.Object) []reconcile.Request {
	m, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil
	}
	requests := []reconcile.Request{request(m.Namespace)}
	for _, thumbprint := range keytrust.Thumbprints(m.Data) {
		sharing, err := r.publishing(ctx, thumbprint)
		if err != nil {
			continue // The cache is stopping; the next start looks at everything.
		}
		for i := range sharing {
			if sharing[i].Namespace != m.Namespace {
				requests = append(requests, request(sharing[i].Namespace))
			}
		}
	}
	return requests
}

// affectedByCluster are a cluster and all that share a key with it: what one may
// claim decides about the others.
func (r *reconciler) affectedByCluster(ctx context.Context, object client.Object) []reconcile.Request {
	m, err := r.published(ctx, object.GetName())
	if err != nil || m == nil {
		return []reconcile.Request{request(object.GetName())}
	}
	return r.affected(ctx, m)
}

func request(cluster string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: cluster}}
}

// concerns reports whether a change of a ManagedCluster can change what counts
// of its issuer.
func concerns(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*clusterv1.ManagedCluster)
	after, ok2 := e.ObjectNew.(*clusterv1.ManagedCluster)
	if !ok1 || !ok2 {
		return false
	}
	was, is := condition(before), condition(after)
	return keytrust.ClusterOf(before) != keytrust.ClusterOf(after) ||
		(was == nil) != (is == nil) ||
		was != nil && (was.Status != is.Status || was.Reason != is.Reason || was.Message != is.Message)
}
