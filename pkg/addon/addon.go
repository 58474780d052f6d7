package addon

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/manager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/tokeninfra"
)

// Config is what the add-on manager needs from its surroundings.
type Config struct {
	// Clock is the hub's.
	Clock clock.PassiveClock
	// Metrics is where metrics are registered.
	Metrics prometheus.Registerer
}

// Setup adds the controllers to mgr, whose cache must have been made with
// CacheOptions.
func Setup(ctx context.Context, mgr ctrl.Manager, config Config) error {
	metrics, err := tokeninfra.NewMetrics(config.Metrics)
	if err != nil {
		return fmt.Errorf("add-on manager: %w", err)
	}
	infrastructure := &tokeninfra.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: config.Clock,
		Events: mgr.GetEventRecorder("ocm-addon-tokeninfra"), Metrics: metrics,
	}
	if err := infrastructure.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("add-on manager: %w", err)
	}
	if err := manager.Setup(ctx, mgr, config.Clock); err != nil {
		return fmt.Errorf("add-on manager: %w", err)
	}
	return nil
}

// CacheOptions returns what the manager's cache holds.
func CacheOptions() cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(tokeninfra.Selector())}
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.ServiceAccount{}:            ours,
		&rbacv1.Role{}:                      ours,
		&rbacv1.RoleBinding{}:               ours,
		&clusterv1.ManagedCluster{}:         {Transform: slimCluster},
		&addonv1beta1.ManagedClusterAddOn{}: {Transform: slimAddOn},
	}}
}

// The slim functions drop what no controller reads. What is written back is
// always a patch.

func slimCluster(in any) (any, error) {
	if cluster, ok := in.(*clusterv1.ManagedCluster); ok {
		cluster.ManagedFields = nil
		cluster.Labels = nil
		cluster.Annotations = manager.Annotations(cluster.Annotations)
		cluster.Spec = clusterv1.ManagedClusterSpec{HubAcceptsClient: cluster.Spec.HubAcceptsClient}
		cluster.Status = clusterv1.ManagedClusterStatus{}
	}
	return in, nil
}

func slimAddOn(in any) (any, error) {
	if addOn, ok := in.(*addonv1beta1.ManagedClusterAddOn); ok {
		addOn.ManagedFields = nil
		addOn.Status.RelatedObjects = nil
		addOn.Status.AddOnMeta = addonv1beta1.AddOnMeta{}
	}
	return in, nil
}
