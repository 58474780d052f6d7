package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// userAgent names us in audit logs.
const userAgent = "kubectl-ocm/work-agent"

// Config is the configuration of the agent.
type Config struct {
	// Cluster is the name of this cluster, and of its namespace on the hub.
	Cluster string
	// AgentID is in every AppliedManifestWork of the agent; empty means the hash of the
	// hub's address.
	AgentID string
	// HubKubeconfig is a file. Files that it names are next to it, and followed.
	HubKubeconfig string
	// StatusSyncInterval is how often an object is read at most for its feedback and
	// conditions, unless a work asks to watch it.
	StatusSyncInterval time.Duration
	// ReviewInterval is how often an executor is asked for again at least, although nothing
	// is to be written.
	ReviewInterval time.Duration
	// EvictionGracePeriod is how long an AppliedManifestWork without a work stays.
	EvictionGracePeriod time.Duration
	// RawFeedback is the feature gate RawFeedbackJsonString, and MaxJSONRawLength how
	// many bytes such feedback may have.
	RawFeedback      bool
	MaxJSONRawLength int32
	// MaxFeedbackWatch is how many objects may have the feedback type Watch; further
	// ones are read as those with Poll.
	MaxFeedbackWatch int
	// Rules evaluates condition rules.
	Rules status.Evaluator
	// Workers is how many works are applied at the same time.
	Workers int
	Clock   clock.WithTicker
	// Metrics is where the agent registers its own.
	Metrics prometheus.Registerer
}

// Validate reports what is missing.
func (c Config) Validate() error {
	var err error
	if c.Cluster == "" {
		err = errors.Join(err, errors.New("the name of the cluster is missing; set --spoke-cluster-name"))
	}
	if c.HubKubeconfig == "" {
		err = errors.Join(err, errors.New("the hub kubeconfig is missing; set --workload-source-config"))
	}
	if c.Rules == nil {
		err = errors.Join(err, errors.New("what evaluates condition rules is missing"))
	}
	if c.ReviewInterval <= 0 { // Zero would review without a pause.
		err = errors.Join(err, errors.New("the review interval must be positive"))
	}
	if c.StatusSyncInterval <= 0 || c.EvictionGracePeriod < 0 || c.Workers <= 0 {
		err = errors.Join(err, errors.New("the status sync interval and the number of workers must be positive, and the eviction grace period must not be negative"))
	}
	return err
}

// CacheOptions are the cache options of the manager of the managed cluster.
func CacheOptions() cache.Options {
	return cache.Options{
		ByObject:         map[client.Object]cache.ByObject{&workv1.AppliedManifestWork{}: {}},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
}

// Setup adds the agent to the manager of the managed cluster.
func Setup(mgr manager.Manager, config Config) error {
	if err := config.Validate(); err != nil {
		return err
	}
	a, err := newAgent(mgr, config)
	if err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(a.inventory.Start)); err != nil {
		return fmt.Errorf("add the inventory: %w", err)
	}
	if err := (&evictor{agent: a}).setup(mgr); err != nil {
		return err
	}
	return mgr.Add(&link{agent: a})
}

// agent is what its controllers have in common. It lives as long as the process, and
// hub connections come and go.
type agent struct {
	config    Config
	managed   cluster
	applier   *strategy.Applier
	checker   *executor.Checker
	inventory *inventory.Inventory
	remover   *remover
	observer  *status.Observer
	slots     *slots
	metrics   *metrics
	hub       hub
	// works and applieds wake the controllers.
	works, applieds wakeups
}

func newAgent(mgr manager.Manager, config Config) (*agent, error) {
	connection := rest.CopyConfig(mgr.GetConfig())
	connection.QPS = -1 // The API server's priority and fairness limits us.
	connection.UserAgent = userAgent
	objects, err := dynamic.NewForConfigAndClient(connection, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("prepare to apply manifests: %w", err)
	}
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(connection), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("prepare to watch objects: %w", err)
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(connection, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("prepare to find served versions: %w", err)
	}
	metrics, err := newMetrics(config.Metrics)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	a := &agent{
		config:   config,
		managed:  cluster{mgr.GetClient(), mgr.GetAPIReader(), metadataClient, mgr.GetRESTMapper(), discoveryClient},
		applier:  &strategy.Applier{Client: objects},
		checker:  &executor.Checker{Reviews: mgr.GetClient(), Config: connection},
		observer: status.NewObserver(status.Limits{Raw: config.RawFeedback, MaxRawLength: int(config.MaxJSONRawLength)}, config.Rules),
		slots:    &slots{most: config.MaxFeedbackWatch},
		metrics:  metrics,
	}
	a.inventory = inventory.New(metadataClient, a.changed)
	a.remover = &remover{
		managed: &a.managed, inventory: a.inventory, applier: a.applier, clock: config.Clock, interval: config.StatusSyncInterval,
	}
	return a, nil
}

// changed wakes the controller of a subscriber of the inventory.
func (a *agent) changed(subscriber string) {
	if name, ok := workOf(subscriber); ok {
		a.works.add(a.config.Cluster, name)
		return
	}
	a.applieds.add("", subscriber)
}
