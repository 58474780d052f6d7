package mint

import (
	"errors"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// Config is the configuration of a Minter. Zero values of the numbers mean the
// defaults.
type Config struct {
	// Hub is the connection whose identity mints. Its client-side rate limit is
	// not used: priority and fairness of the API server and Limits do that.
	Hub *rest.Config
	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
	// Log gets what no request reports, such as a renewal that failed.
	Log logr.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
	// Bytes is about how much memory the tokens that are kept take, 32 MiB by
	// default. What is remembered of denials and of identities takes an eighth of
	// that each. When it is full, the cluster that holds the most loses first.
	Bytes int
	// InFlight is how many TokenRequests are made at a time, 256 by default. A
	// cluster gets no more than what is left over for the others.
	InFlight int
	// Timeout is how long one TokenRequest may take, 5 s by default. It does not
	// depend on how long a caller waits.
	Timeout time.Duration
}

// Settings are the settings that change with the configuration.
type Settings struct {
	// Namespaces of the hub in which targets are known to be. They are watched
	// from the beginning; others once a request needs them.
	Namespaces []string
	// Clusters by name; policy.AnyCluster is for those without their own entry. The
	// tokens of a cluster that has neither are forgotten.
	Clusters map[string]ClusterSettings
}

// ClusterSettings are the settings for the identities of one cluster.
type ClusterSettings struct {
	// Generation of the rules, as in the Requests. Tokens that were minted under
	// another one are forgotten.
	Generation uint64
	// Limits with zero fields mean the defaults.
	Limits Limits
}

func (s Settings) cluster(name string) (ClusterSettings, bool) {
	if c, ok := s.Clusters[name]; ok {
		return c, true
	}
	c, ok := s.Clusters[policy.AnyCluster]
	return c, ok
}

// Limits bound the minting, not the requests that a kept token answers.
type Limits struct {
	// Cluster is for all identities of one cluster together, 100 per second and
	// bursts of 1,000 by default.
	Cluster Rate
	// Identity is for one identity, 1 per second and bursts of 10 by default.
	Identity Rate
}

// Rate is a token bucket's.
type Rate struct {
	PerSecond float64
	Burst     int
}

// The defaults.
const (
	defaultBytes    = 32 << 20
	defaultInFlight = 256
	defaultTimeout  = 5 * time.Second
)

func (c Config) withDefaults() (Config, error) {
	if c.Hub == nil {
		return c, errors.New("a minter needs a connection to the hub")
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Bytes == 0 {
		c.Bytes = defaultBytes
	}
	if c.InFlight == 0 {
		c.InFlight = defaultInFlight
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	return c, nil
}

func (l Limits) withDefaults() Limits {
	if l.Cluster == (Rate{}) {
		l.Cluster = Rate{PerSecond: 100, Burst: 1000}
	}
	if l.Identity == (Rate{}) {
		l.Identity = Rate{PerSecond: 1, Burst: 10}
	}
	return l
}
