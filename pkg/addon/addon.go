package addon

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonindex"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonwork"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/manager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/template"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/template/certificate"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/tokeninfra"
)

// Config is the configuration of the add-on manager.
type Config struct {
	// Clock is the hub's clock.
	Clock clock.PassiveClock
	// Metrics registers metrics.
	Metrics prometheus.Registerer
	// Namespace is the add-on manager's own.
	Namespace string
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
	if err := addonindex.Add(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("add-on manager: %w", err)
	}
	if err := addonwork.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("add-on manager: %w", err)
	}
	if err := manager.Setup(ctx, mgr, config.Clock); err != nil {
		return fmt.Errorf("add-on manager: %w", err)
	}
	deployed, err := template.NewMetrics(config.Metrics)
	if err != nil {
		return fmt.Errorf("add-on manager: %w", err)
	}
	templates := &template.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Configs: mgr.GetCache(), Clock: config.Clock, Metrics: deployed,
	}
	if err := templates.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("add-on manager: %w", err)
	}
	certificates := &certificate.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Configs: mgr.GetCache(), Clock: config.Clock, Namespace: config.Namespace,
		Events: mgr.GetEventRecorder("ocm-addoncertificate"),
	}
	if err := certificates.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("add-on manager: %w", err)
	}
	return nil
}

// CacheOptions returns what the manager's cache holds.
func CacheOptions() cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(tokeninfra.Selector())}
	addOns := cache.ByObject{Label: addonwork.Selector()}
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.ServiceAccount{}:                    ours,
		&rbacv1.Role{}:                              ours,
		&rbacv1.RoleBinding{}:                       {Label: tokeninfra.Named()},
		&certificatesv1.CertificateSigningRequest{}: addOns,
		&workv1.ManifestWork{}:                      {Label: addonwork.Selector(), Transform: addonwork.Slim},
		&clusterv1.ManagedCluster{}:                 {Transform: slimCluster},
		&addonv1beta1.ManagedClusterAddOn{}:         {Transform: slimAddOn},
	}}
}

// The slim functions drop what no controller reads. What is written back is
// always a patch.

func slimCluster(in any) (any, error) {
	if cluster, ok := in.(*clusterv1.ManagedCluster); ok {
		cluster.ManagedFields = nil
		cluster.Labels = nil
		annotations := manager.Annotations(cluster.Annotations)
		if registries, ok := cluster.Annotations[clusterv1.ClusterImageRegistriesAnnotationKey]; ok {
			annotations[clusterv1.ClusterImageRegistriesAnnotationKey] = registries
		}
		cluster.Annotations = annotations
		cluster.Spec = clusterv1.ManagedClusterSpec{HubAcceptsClient: cluster.Spec.HubAcceptsClient}
		available := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
		cluster.Status = clusterv1.ManagedClusterStatus{}
		if available != nil {
			cluster.Status.Conditions = []metav1.Condition{{Type: available.Type, Status: available.Status}}
		}
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
