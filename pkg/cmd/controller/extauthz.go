//go:build linux

package controller

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// extAuthzFlags are the flags of the token authorizer.
type extAuthzFlags struct {
	common common
	source extAuthzSource
	server extAuthzServer
	logs   extAuthzLogs
}

func newExtAuthz() *cobra.Command {
	flags := &extAuthzFlags{common: newCommon()}
	flags.common.leaderElect = false // Every replica serves.
	return newRole(flags, &cobra.Command{
		Use:     "extauthz",
		Aliases: []string{"authz"},
		Short:   "Exchange workload tokens for tokens of the hub, for a proxy",
		Long: `Answers Envoy's external authorization: a request with a ServiceAccount token of
a managed cluster continues with a token of the hub, by the rules of a
configuration. Clusters and rules come from a file, or from the hub itself.`,
		Example: `  kubectl ocm controller extauthz --clusters-config clusters.yaml
  kubectl ocm controller extauthz --from-hub --http-port 9002 --sts`,
	})
}

func (f *extAuthzFlags) addFlags(cmd *cobra.Command) {
	f.common.addFlags(cmd)
	f.source.addFlags(cmd.Flags())
	f.server.addFlags(cmd.Flags())
	f.logs.addFlags(cmd)
}

func (f *extAuthzFlags) run(cmd *cobra.Command) error {
	if err := errors.Join(f.source.validate(), f.server.validate(), f.server.validateTLS()); err != nil {
		return err
	}
	logger := f.logs.logger(cmd.ErrOrStderr())
	log := logr.FromSlogHandler(logger.Handler())
	hub, err := f.hub()
	if err != nil {
		return err
	}
	source, err := f.source.source(logger)
	if err != nil {
		return err
	}
	audit, err := f.logs.audit(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	klog.SetLogger(log)
	ctx := klog.NewContext(cmd.Context(), log)
	objects := cache.Options{}
	if f.source.fromHub {
		objects = tokenauthorizer.CacheOptions()
	}
	mgr, err := f.common.managerOf(hub, "token-authorizer", objects)
	if err != nil {
		return err
	}
	server := f.server.value()
	if server.TLS == nil && f.server.reachable() {
		logger.Warn("Serving in plain text: anyone on the network path can read tokens. " +
			"Set --tls-cert-file and --tls-key-file, or serve at --addr 127.0.0.1 or a --unix-socket alone")
	}
	if err := tokenauthorizer.Setup(ctx, mgr, tokenauthorizer.Config{
		Source: source, Server: server, Hub: hub, Audit: audit,
		Clock: clock.RealClock{}, Log: log, Warn: func(message string) { logger.WarnContext(ctx, message) }, Metrics: metrics.Registry,
	}); err != nil {
		return f.explain(err)
	}
	log.Info("Starting the token authorizer", "source", f.source.String(), "endpoints", server.Endpoints, "tls", server.TLS != nil)
	return mgr.Start(ctx)
}

// hub returns the connection that mints tokens.
func (f *extAuthzFlags) hub() (*rest.Config, error) {
	if f.common.kubeconfig == "" {
		connection, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, &cli.Explained{
				Problem: "there is no connection to the hub, whose tokens are issued",
				Try:     "run it in the hub's cluster, or name a kubeconfig of the hub with --kubeconfig",
				Code:    cli.CodeUsage,
			}
		} else if err != nil {
			return nil, err
		}
		return unlimited(connection), nil
	}
	connection, err := f.common.config()
	if err == nil {
		err = verifiesHub(connection)
	}
	if err != nil {
		return nil, fmt.Errorf("the hub's kubeconfig: %w", err)
	}
	return connection, nil
}

// explain says what to do about a start that failed.
func (f *extAuthzFlags) explain(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist) && f.source.file != "":
		return &cli.Explained{
			Problem: err.Error(),
			Try:     "check the path of --clusters-config",
		}
	case errors.As(err, new(*config.InvalidError)):
		return &cli.Explained{
			Problem: err.Error(),
			Try:     "fix the file; kubectl ocm exchange policy lint --clusters-config " + f.source.file + " checks it",
		}
	}
	return err
}

// self is the ServiceAccount that the role runs as, as far as that is known.
func self() policy.Account {
	namespace := os.Getenv("POD_NAMESPACE")
	if namespace == "" {
		return policy.Account{}
	}
	return policy.Account{Namespace: namespace, Name: names.TokenAuthorizer}
}

// audit opens the audit log, which is nil without the flag.
func (f *extAuthzLogs) audit(out io.Writer) (io.Writer, error) {
	switch f.auditLog {
	case "":
		return nil, nil //nolint:nilnil // no log is a log that is nobody's
	case "-":
		return out, nil
	}
	// Others may read who was who no more than they may read the token.
	file, err := os.OpenFile(f.auditLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--audit-log: %w", err)
	}
	return file, nil
}

// source returns where clusters and rules come from.
func (f *extAuthzSource) source(log *slog.Logger) (tokenauthorizer.Source, error) {
	out := tokenauthorizer.Source{File: f.file, FromHub: f.fromHub, Options: config.Options{Strict: f.strict, Self: self(), Expiration: f.life()}}
	switch {
	case f.file != "" && f.workload != "":
		log.Warn("Ignoring --workload-kubeconfig: --clusters-config says which tokens are taken")
	case f.workload != "":
		workload, err := clientcmd.BuildConfigFromFlags("", f.workload)
		if err != nil {
			return out, fmt.Errorf("--workload-kubeconfig: %w", err)
		}
		log.Warn("--workload-kubeconfig is deprecated. Every request asks that cluster, and each of its ServiceAccounts " +
			"becomes the one of the same namespace and name on this hub. Describe the cluster in --clusters-config instead, " +
			"or have its agent publish its keys and use --from-hub")
		out.Workload = unlimited(workload)
	}
	return out, nil
}
