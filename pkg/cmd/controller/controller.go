//go:build linux

package controller

import (
	"cmp"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
)

// New returns the "controller" command with every role.
func New() *cobra.Command {
	return cli.Parent("controller", "Run a controller (used by the Deployments)",
		newClusterManager(),
		newHub(),
		newWebhook(),
		newCleanup(),
		newAddOnManager(),
		newExtAuthz(),
		newAgent(),
		newWork(),
		newRules(),
		newIssuer(),
		newImagePull(),
		newKlusterlet())
}

// role is the flags of a role, and what it runs with them.
type role interface {
	addFlags(cmd *cobra.Command)
	run(cmd *cobra.Command) error
}

// newRole completes the command of a role.
func newRole(r role, cmd *cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return r.run(cmd) }
	r.addFlags(cmd)
	return cmd
}

// common holds the flags that every role has; their defaults are those of newCommon.
type common struct {
	kubeconfig              string
	bindAddress             string
	healthPort              int
	metricsPort             int
	pprof                   bool
	leaderElect             bool
	leaderElectionNamespace string
	lease                   leaseTiming
}

// leaseTiming is how leader election waits. A shorter lease is a shorter gap
// after a crash, paid for with more writes.
type leaseTiming struct {
	duration time.Duration
	renew    time.Duration
	retry    time.Duration
	// every is how often the lease is written, 0 for every retry period.
	every time.Duration
}

// newCommon returns the defaults of a role of which one replica works.
func newCommon() common {
	return common{leaderElect: true, lease: leaseTiming{duration: 15 * time.Second, renew: 10 * time.Second, retry: 2 * time.Second}}
}

func (c *common) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster this role runs for; empty means the cluster it runs in")
	flags.StringVar(&c.bindAddress, "bind-address", "", "address that health and metrics are served on; empty means all")
	flags.IntVar(&c.healthPort, "health-port", 8000, "port of /healthz and /readyz; 0 switches them off")
	flags.IntVar(&c.metricsPort, "metrics-port", 8080, "port of /metrics; 0 switches it off")
	flags.BoolVar(&c.pprof, "pprof", false, "Serve /debug/pprof next to /metrics")
	flags.BoolVar(&c.leaderElect, "leader-elect", c.leaderElect, "work only while holding the lease, so that one of several replicas does")
	flags.StringVar(&c.leaderElectionNamespace, "leader-election-namespace", "", "namespace of that lease; empty means $POD_NAMESPACE")
	flags.DurationVar(&c.lease.duration, "leader-election-lease-duration", c.lease.duration, "how long others wait before they take an unrenewed lease")
	flags.DurationVar(&c.lease.renew, "leader-election-renew-deadline", c.lease.renew, "how long the leader tries to renew before it gives up")
	flags.DurationVar(&c.lease.retry, "leader-election-retry-period", c.lease.retry, "how long to wait between tries")
}

// config returns the connection of this role to its cluster.
func (c *common) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, err
	}
	return unlimited(config), nil
}

// verifiesHub returns an error if a connection would send credentials to a hub
// whose certificate was not verified.
func verifiesHub(config *rest.Config) error {
	if config.Insecure || !strings.HasPrefix(config.Host, "https://") {
		return errors.New("it does not verify the hub: use an https URL and a certificate authority")
	}
	return nil
}

// namespace is that of the role, empty where it does not run in a pod and no flag
// says it.
func (c *common) namespace() string {
	return cmp.Or(c.leaderElectionNamespace, os.Getenv("POD_NAMESPACE"))
}

// unlimited leaves rate limiting to the API server's priority and fairness,
// which knows how busy it is.
func unlimited(config *rest.Config) *rest.Config {
	config.QPS, config.Burst = -1, 0
	return config
}

// manager returns the manager of the role called name for the cluster that the
// flags name.
func (c *common) manager(name string, objects cache.Options) (manager.Manager, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	return c.managerOf(config, name, objects)
}

// managerOf returns the manager of the role called name, with health checks and
// without any controller. A process that lost its lease exits: what it does in
// that moment must not overlap with the next leader's work.
func (c *common) managerOf(config *rest.Config, name string, objects cache.Options) (manager.Manager, error) {
	ctrl.SetLogger(klog.Background())
	namespace := c.namespace()
	if c.leaderElect && namespace == "" {
		return nil, errors.New("leader election needs a namespace: set --leader-election-namespace, or --leader-elect=false when there is one process only")
	}
	objects.DefaultTransform = cache.TransformStripManagedFields()
	lock, err := c.lock(config, namespace, "ocm-"+name)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:                  scheme.New(),
		Cache:                   objects,
		Metrics:                 metricsserver.Options{BindAddress: c.address(c.metricsPort)},
		HealthProbeBindAddress:  c.address(c.healthPort),
		PprofBindAddress:        c.pprofAddress(),
		LeaderElection:          c.leaderElect,
		LeaderElectionID:        "ocm-" + name,
		LeaderElectionNamespace: namespace,

		LeaderElectionResourceLockInterface: lock,

		// The priority queue of controller-runtime v0.24.1 can block forever
		// while a process stops (kubernetes-sigs/controller-runtime#3538).
		Controller: controllerconfig.Controller{UsePriorityQueue: new(false)},

		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &c.lease.duration,
		RenewDeadline:                 &c.lease.renew,
		RetryPeriod:                   &c.lease.retry,
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("ping", healthz.Ping)
}

func (c *common) address(port int) string {
	if port == 0 {
		return "0" // The manager's word for "do not serve".
	}
	return net.JoinHostPort(c.bindAddress, strconv.Itoa(port))
}

func (c *common) pprofAddress() string {
	if !c.pprof {
		return ""
	}
	return net.JoinHostPort(c.bindAddress, "6060")
}
