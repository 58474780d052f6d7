package addon

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.addon-registration"

const (
	// workers is how many add-ons are reconciled at a time. A worker mostly waits for
	// an API server.
	workers = 16
	// firstRetry and lastRetry bound the wait after an unforeseen error.
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// NewDriver returns the driver of one registration of an add-on, of either type.
type NewDriver func(addOn *addonv1beta1.ManagedClusterAddOn, registration addonv1beta1.RegistrationConfig) driver.AddOn

// Config configures the registration of the add-ons of one cluster.
type Config struct {
	// Cluster is the name of the ManagedCluster, and of its namespace on the hub.
	Cluster string
	// Namespace is the agent's namespace on the managed cluster.
	Namespace string
	// Reserved are the names of Secrets in Namespace that no add-on can use.
	Reserved []string
	// NewDriver returns drivers.
	NewDriver NewDriver
	// Hub is the API server in the kubeconfigs of add-ons and of the agent.
	Hub kubeconfig.Hub
	// Live reads and writes on the hub with the cluster's credential and without
	// a cache.
	Live client.Client
	// Managed is the managed cluster.
	Managed cluster.Cluster
	// Metrics record credentials.
	Metrics *Metrics
	// Clock is also the clock of the work queue, for renewals.
	Clock clock.WithTicker
}

// Validate returns an error for every missing field.
func (c *Config) Validate() error {
	var problems []error
	if c.Cluster == "" || c.Namespace == "" {
		problems = append(problems, errors.New("add-on registration requires the names of the cluster and of the agent's namespace"))
	}
	if c.NewDriver == nil || c.Live == nil || c.Managed == nil || c.Metrics == nil || c.Clock == nil {
		problems = append(problems, errors.New("add-on registration requires a driver, clients, metrics and a clock"))
	}
	return errors.Join(problems...)
}

// Setup adds add-on registration to the manager of a hub connection.
func Setup(mgr ctrl.Manager, config Config) error {
	r, err := newReconciler(mgr, config)
	if err == nil {
		err = control(mgr, r.watches, r)
	}
	if err != nil {
		return fmt.Errorf("set up add-on registration: %w", err)
	}
	return nil
}

// control sets up the controller that calls r for the events of the watches.
func control(mgr ctrl.Manager, w *watches, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.addons").
		WatchesRawSource(w).
		WithOptions(controller.Options{
			NewQueue:                newQueue(w.reconciler.config.Clock),
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// newQueue returns a constructor of work queues that use clock c. The default queue
// always uses the real clock.
func newQueue(c clock.WithTicker) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: c})
	}
}

// newReconciler returns a reconciler whose caches are parts of the manager.
func newReconciler(mgr ctrl.Manager, config Config) (*Reconciler, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	secrets, err := newSecretCache(config)
	if err != nil {
		return nil, err
	}
	hub, err := newHubCache(mgr, config.Cluster)
	if err != nil {
		return nil, err
	}
	r := &Reconciler{
		config: config, hub: hub, secrets: secrets, memory: newMemory(), leases: newLeases(config.Managed),
		events: newRecorder(mgr, config.Managed), log: mgr.GetLogger().WithName("addons"), began: config.Clock.Now(),
	}
	r.watches = &watches{reconciler: r, hub: hub}
	for _, runnable := range []manager.Runnable{startOnly{hub}, startOnly{r.secrets}, r.leases} {
		if err := mgr.Add(runnable); err != nil {
			return nil, err
		}
	}
	return r, nil
}
