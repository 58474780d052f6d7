package tokenauthorizer

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/audit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/metric"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// Config is the configuration of the role.
type Config struct {
	// Source of the configuration.
	Source Source
	// Server configures the endpoints; its Authorizer is set by Setup.
	Server server.Config
	// Hub is the connection that mints tokens.
	Hub *rest.Config
	// Audit gets one line per decision; nil writes none.
	Audit io.Writer
	// Clock is the time.
	Clock clock.WithTicker
	// Log gets what operators should know, and Warn what they should change; nil
	// has Log get that too.
	Log  logr.Logger
	Warn func(message string)
	// Metrics receives the metrics, and is where /clusters counts requests.
	Metrics metrics.RegistererGatherer
}

// Source is the source of clusters and rules: exactly one of File, FromHub and
// Workload.
type Source struct {
	// File is read again when it changes.
	File string
	// FromHub takes the rules from the objects on the hub, as they change, and the
	// keys that clusters publish there, unless a policy says otherwise.
	FromHub bool
	// Workload is the connection to the one cluster whose tokens are proven by
	// TokenReviews, the older way of tokensmith.
	Workload *rest.Config
	// Options are the settings that are not part of a file.
	Options config.Options
}

// errSource rejects a Source without or with several sources.
var errSource = errors.New("exactly one source of clusters is needed: a file, the hub, or a workload cluster")

func (s Source) check() error {
	n := 0
	for _, given := range []bool{s.File != "", s.FromHub, s.Workload != nil} {
		if given {
			n++
		}
	}
	if n != 1 {
		return errSource
	}
	return nil
}

// Setup adds the role to mgr, whose cache has CacheOptions if keys are read from the
// hub. It fails if the file cannot be used or an address cannot be listened on, so that
// the start of a role reports the problem.
func Setup(ctx context.Context, mgr manager.Manager, c Config) error {
	if err := c.Source.check(); err != nil {
		return err
	}
	r, err := newRole(c)
	if err != nil {
		return err
	}
	feed, err := r.feed(mgr)
	if err != nil {
		return err
	}
	// What serves is stopped by the manager before what it needs: the Server
	// says that it is no matter of leader election, the others do not, and all
	// of them run.
	for _, part := range append(feed, r.minter.Run, r.announce, r.audit) {
		if err := mgr.Add(manager.RunnableFunc(part)); err != nil {
			return err
		}
	}
	if err := r.server.Listen(ctx); err != nil {
		return err
	}
	if err := mgr.Add(r.server); err != nil {
		return err
	}
	return r.expose(mgr)
}

// role is the parts in their places.
type role struct {
	config     Config
	store      *jwks.Store
	minter     *mint.Minter
	authorizer *authorizer.Authorizer
	auditor    *audit.Log
	server     *server.Server
	engine     *engine
	reports    *reporter
	conditions *conditions
}

func newRole(c Config) (*role, error) {
	if c.Warn == nil {
		c.Warn = func(message string) { c.Log.Info("Warning: " + message) }
	}
	r := &role{config: c, reports: newReporter(c.Clock)}
	keys := jwks.Config{
		Hub: c.Source.FromHub, Clock: c.Clock, Log: c.Log.WithName("keys"),
		// The issued tokens of a cluster go with its keys.
		Gone: func(cluster string) { r.minter.EvictCluster(cluster) },
	}
	if c.Source.FromHub { // A file has no conditions.
		keys.Read = func(cluster string) { r.conditions.outdate(policyOf(cluster)) }
	}
	r.store = jwks.New(keys)
	r.conditions = newConditions(r.store.StatusOf)
	var err error
	if r.minter, err = mint.New(mint.Config{
		Hub: c.Hub, Clock: c.Clock, Log: c.Log.WithName("exchange"), Metrics: c.Metrics,
	}); err != nil {
		return nil, err
	}
	chain := authorizer.Config{Minter: r.minter, Clock: c.Clock, Metrics: c.Metrics}
	if c.Audit != nil {
		if r.auditor, err = audit.New(audit.Config{Writer: c.Audit, Metrics: c.Metrics}); err != nil {
			return nil, err
		}
		chain.Auditor = r.auditor
	}
	if c.Source.FromHub {
		chain.Auditor = counting{Auditor: chain.Auditor, reports: r.reports}
	}
	if r.authorizer, err = authorizer.New(chain); err != nil {
		return nil, err
	}
	if _, err = metric.Register(c.Metrics, r.store.Metrics()); err != nil {
		return nil, err
	}
	if r.engine, err = newEngine(c, r.store, r.minter, r.authorizer); err != nil {
		return nil, err
	}
	c.Server.Authorizer, c.Server.Clock, c.Server.Log = r.authorizer, c.Clock, c.Log.WithName("server")
	if r.server, err = server.New(c.Server); err != nil {
		return nil, err
	}
	return r, nil
}

// feed returns what keeps the configuration, and the keys of clusters, current.
func (r *role) feed(mgr manager.Manager) ([]func(context.Context) error, error) {
	source := r.config.Source
	switch {
	case source.Workload != nil:
		return nil, r.engine.review(source)
	case source.File != "":
		// The watch reads it again; here it is about the error.
		if _, err := config.Load(source.File, source.Options); err != nil {
			return nil, err
		}
		return []func(context.Context) error{r.store.Run, func(ctx context.Context) error {
			return config.Watch(ctx, r.config.Clock, source.File, source.Options, r.engine.changed)
		}}, nil
	default:
		r.reports.client, r.conditions.client = mgr.GetClient(), mgr.GetClient()
		objects := &rules{
			client: mgr.GetClient(), hub: config.Hub{Options: source.Options}, changed: r.engine.changed, reports: r.reports,
			conditions: r.conditions,
		}
		if err := errors.Join(objects.conditions.add(mgr), objects.follow(mgr)); err != nil {
			return nil, err
		}
		published := &publications{hub: mgr.GetCache(), store: r.store}
		if err := published.follow(mgr); err != nil {
			return nil, err
		}
		return []func(context.Context) error{r.store.Run, objects.begin, published.begin}, nil
	}
}

// expose adds what the role reports about itself to the manager's servers.
func (r *role) expose(mgr manager.Manager) error {
	if err := mgr.AddReadyzCheck("extauthz", r.check); err != nil {
		return err
	}
	status := &status{config: r.config, store: r.store, minter: r.minter, engine: r.engine, check: r.check}
	for path, handler := range map[string]http.HandlerFunc{
		"/clusters": status.serveClusters,
		"/readyz":   status.serveReady,
	} {
		if err := mgr.AddMetricsServerExtraHandler(path, handler); err != nil {
			return err
		}
	}
	return nil
}

// audit writes the audit log, if there is one.
func (r *role) audit(ctx context.Context) error {
	if r.auditor == nil {
		return nil
	}
	return r.auditor.Run(ctx)
}
