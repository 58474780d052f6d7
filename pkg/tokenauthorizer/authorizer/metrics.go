package authorizer

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/metric"
)

// Stages of a request, in their order.
const (
	stageVerify = iota
	stagePolicy
	stageReview
	stageExchange
	stages
)

// Results and outcomes.
const (
	allowed = "allowed"
	denied  = "denied"
	failed  = "error"
)

// metrics are the metrics of whole requests.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	reviews  *prometheus.CounterVec
	limited  *prometheus.CounterVec
	stages   [stages]prometheus.Observer
	// known is the *series by cluster name, so that the warm path looks up no
	// label.
	known sync.Map
}

// series are the metrics of one cluster that every allowed request touches.
type series struct {
	allowed  prometheus.Counter
	duration prometheus.Observer
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	buckets := []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	var m metrics
	stageDuration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: metric.Prefix + "stage_duration_seconds", Help: "Time that a stage of a request took.", Buckets: buckets,
	}, []string{"stage"})
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: metric.Prefix + "requests_total", Help: "Decided requests; reason is empty for allowed ones.",
	}, []string{"cluster", "result", "reason"})
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: metric.Prefix + "request_duration_seconds", Help: "Time that a decision took.", Buckets: buckets,
	}, []string{"cluster", "outcome"})
	m.reviews = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: metric.Prefix + "reviews_total", Help: "Reviews of subject tokens, by reason of denied or allowed.",
	}, []string{"cluster", "result"})
	m.limited = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: metric.Prefix + "rate_limited_total", Help: "Requests that were refused for their rate.",
	}, []string{"cluster"})
	var errs [5]error
	stageDuration, errs[0] = metric.Register(registerer, stageDuration)
	m.requests, errs[1] = metric.Register(registerer, m.requests)
	m.duration, errs[2] = metric.Register(registerer, m.duration)
	m.reviews, errs[3] = metric.Register(registerer, m.reviews)
	m.limited, errs[4] = metric.Register(registerer, m.limited)
	for i, name := range []string{"verify", "policy", "review", "exchange"} {
		m.stages[i] = stageDuration.WithLabelValues(name)
	}
	return &m, errors.Join(errs[:]...)
}

// series returns what an allowed request of the cluster is counted in.
func (m *metrics) series(cluster string) *series {
	if known, ok := m.known.Load(cluster); ok {
		return known.(*series) //nolint:errcheck,forcetypeassert // nothing else is in there
	}
	s := &series{
		allowed:  m.requests.WithLabelValues(cluster, allowed, ""),
		duration: m.duration.WithLabelValues(cluster, allowed),
	}
	m.known.Store(cluster, s)
	return s
}

// stage observes the time since a stage began and returns the time now.
func (m *metrics) stage(stage int, began time.Time, c clock.PassiveClock) time.Time {
	now := c.Now()
	m.stages[stage].Observe(now.Sub(began).Seconds())
	return now
}

func (m *metrics) observe(current *Snapshot, d Decision, err error, took time.Duration) {
	if err == nil {
		s := m.series(d.Identity.Cluster)
		s.allowed.Inc()
		s.duration.Observe(took.Seconds())
		return
	}
	cluster, refused := label(current, d.Identity.Cluster), denial.Of(err)
	m.requests.WithLabelValues(cluster, result(refused), string(refused.Reason)).Inc()
	m.duration.WithLabelValues(cluster, result(refused)).Observe(took.Seconds())
	if refused.Reason == denial.RateLimited {
		m.limited.WithLabelValues(cluster).Inc()
	}
}

func (m *metrics) reviewed(current *Snapshot, cluster string, err error) {
	result := allowed
	if err != nil {
		result = string(denial.Of(err).Reason)
	}
	m.reviews.WithLabelValues(label(current, cluster), result).Inc()
}

// result distinguishes a denial that the caller caused from a fault of ours.
func result(refused *denial.Error) string {
	if refused.Reason.Class() == denial.Unavailable {
		return failed
	}
	return denied
}

// label is the cluster as a label: only what the configuration or the hub's
// ManagedClusters name.
func label(current *Snapshot, cluster string) string {
	if current == nil || cluster == "" {
		return metric.UnknownCluster
	}
	if current.cluster(cluster) == nil {
		return metric.UnknownCluster
	}
	return cluster
}
