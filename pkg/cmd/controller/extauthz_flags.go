//go:build linux

package controller

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// maxDrain leaves time, of the 30 seconds that a Pod has to end, for requests
// that are under way.
const maxDrain = 15 * time.Second

// extAuthzSource says where clusters and rules come from.
type extAuthzSource struct {
	file       string
	workload   string
	fromHub    bool
	strict     bool
	expiration int
}

func (f *extAuthzSource) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "clusters-config", "", "file with the clusters whose tokens are taken, and the rules for them; read again when it changes")
	flags.BoolVar(&f.fromHub, "from-hub", false, "take the rules from the TokenExchangePolicies on the hub, and the keys that managed clusters publish there")
	flags.BoolVar(&f.strict, "strict", false, "refuse a file in tokensmith's form, which has no policy")
	flags.IntVar(&f.expiration, "token-expiration", int(policy.DefaultExpiration/time.Second), "seconds that issued tokens live where no rule says otherwise; at least 600")
	cli.Seconds(flags.Lookup("token-expiration"))
	flags.StringVar(&f.workload, "workload-kubeconfig", "", "kubeconfig of the one cluster that is asked about every token by TokenReview")
	// It is reported at the start, with what to do instead.
	flags.Lookup("workload-kubeconfig").Usage += " (deprecated)"
}

func (f *extAuthzSource) validate() error {
	switch {
	case f.file == "" && f.workload == "" && !f.fromHub:
		return cli.Usagef("it is not said whose tokens are taken: use --clusters-config FILE, or --from-hub")
	case f.fromHub && (f.file != "" || f.workload != ""):
		return cli.Usagef("--from-hub takes clusters and rules from the hub: leave out --clusters-config and --workload-kubeconfig")
	case f.strict && f.file == "":
		return cli.Usagef("--strict is about a file: name it with --clusters-config")
	case f.life() < policy.MinExpiration:
		return cli.Usagef("--token-expiration %d: the hub's API server issues no token for less than %d seconds", f.expiration, int(policy.MinExpiration/time.Second))
	}
	return nil
}

func (f *extAuthzSource) life() time.Duration { return time.Duration(f.expiration) * time.Second }

// String names the source, for the log.
func (f *extAuthzSource) String() string {
	switch {
	case f.fromHub:
		return "hub"
	case f.file != "":
		return f.file
	default:
		return "TokenReview"
	}
}

// extAuthzServer says what is served, and where.
type extAuthzServer struct {
	config         server.Config
	tls            server.TLS
	address        string
	port, httpPort int
}

func (f *extAuthzServer) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "addr", "0.0.0.0", "address that gRPC and HTTP are served at")
	flags.IntVar(&f.port, "port", names.TokenAuthorizerPort, "port of Envoy's gRPC protocol; 0 switches it off")
	flags.IntVar(&f.httpPort, "http-port", 0, "port of the HTTP protocol, for Envoy, nginx and Traefik, under "+server.AuthzPath+"; 0 switches it off")
	flags.StringVar(&f.config.Endpoints.Unix, "unix-socket", "", "path of a Unix socket that serves gRPC in plain text")
	flags.BoolVar(&f.config.Exchange, "sts", false, "exchange tokens by RFC 8693 as well, with POST "+server.TokenPath+" at --http-port")
	flags.DurationVar(&f.config.Drain, "drain", 5*time.Second, "how long to serve on after the end was asked for, while health checks send proxies elsewhere; at most "+maxDrain.String())
	flags.StringVar(&f.tls.CertFile, "tls-cert-file", "", "certificate to serve with, in PEM; without it nothing is encrypted, which is for a proxy in the same Pod")
	flags.StringVar(&f.tls.KeyFile, "tls-key-file", "", "key of that certificate, in PEM; both are read again when they change")
	flags.StringVar(&f.tls.ClientCAFile, "client-ca-file", "", "CAs of proxies, in PEM: only those with a certificate may ask for decisions")
	flags.StringSliceVar(&f.tls.ClientSANs, "client-san", nil, "with --client-ca-file: names of the proxies that may ask, DNS names, URIs (SPIFFE), IP or mail addresses; empty means every client of the CAs")
	flags.StringVar(&f.config.Answers.Realm, "realm", "hub", "Realm in WWW-Authenticate")
	flags.BoolVar(&f.config.Answers.ErrorResponse, "envoy-error-response", false, "Report internal errors to Envoy v1.37 and newer with status 503 and Retry-After, instead of failing its call")
	flags.BoolVar(&f.config.Answers.Reason, "reason-header", false, "Return the reason of a denial in the header x-ocm-reason")
}

func (f *extAuthzServer) validate() error {
	switch drain := f.config.Drain; {
	case f.port == 0 && f.httpPort == 0 && f.config.Endpoints.Unix == "":
		return cli.Usagef("nothing is served: set --port, --http-port or --unix-socket")
	case f.config.Exchange && f.httpPort == 0:
		return cli.Usagef("--sts is served over HTTP: set --http-port")
	case drain < 0 || drain > maxDrain:
		return cli.Usagef("--drain %s: it must be between 0s and %s, since a Pod has 30 seconds to end", drain, maxDrain)
	}
	return nil
}

func (f *extAuthzServer) validateTLS() error {
	switch tls := f.tls; {
	case (tls.CertFile == "") != (tls.KeyFile == ""):
		return cli.Usagef("--tls-cert-file and --tls-key-file belong together")
	case tls.ClientCAFile != "" && tls.CertFile == "":
		return cli.Usagef("--client-ca-file needs TLS: set --tls-cert-file and --tls-key-file")
	case len(tls.ClientSANs) > 0 && tls.ClientCAFile == "":
		return cli.Usagef("--client-san needs --client-ca-file: a name proves nothing without a CA")
	}
	return nil
}

// reachable reports whether other machines can reach what is served.
func (f *extAuthzServer) reachable() bool {
	ip := net.ParseIP(f.address)
	return (f.port != 0 || f.httpPort != 0) && f.address != "localhost" && (ip == nil || !ip.IsLoopback())
}

// value is what the flags say.
func (f *extAuthzServer) value() server.Config {
	at := func(port int) string {
		if port == 0 {
			return ""
		}
		return net.JoinHostPort(f.address, strconv.Itoa(port))
	}
	config := f.config
	config.Endpoints.GRPC, config.Endpoints.HTTP = at(f.port), at(f.httpPort)
	if f.tls.CertFile != "" {
		config.TLS = &f.tls
	}
	return config
}

// logLevel and logFormat are the words of the flags.
type (
	logLevel  string
	logFormat string
)

// extAuthzLogs say what is written down.
type extAuthzLogs struct {
	level    logLevel
	format   logFormat
	auditLog string
}

func (f *extAuthzLogs) addFlags(cmd *cobra.Command) {
	f.level, f.format = "info", "json"
	cli.NewEnum(&f.level, nil, "debug", "info", "warn", "error").AddTo(cmd, "log-level", "", "least level of what is logged, to stderr")
	cli.NewEnum(&f.format, nil, "json", "text").AddTo(cmd, "log-format", "", "form of the log")
	cmd.Flags().StringVar(&f.auditLog, "audit-log", "", "file for one line of JSON per decision, - for stdout; empty writes none")
}

// logger returns the logger of the role.
func (f *extAuthzLogs) logger(out io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		panic(fmt.Sprintf("a level that the flag took: %v", err))
	}
	options := &slog.HandlerOptions{Level: level}
	if f.format == "text" {
		return slog.New(slog.NewTextHandler(out, options))
	}
	return slog.New(slog.NewJSONHandler(out, options))
}
