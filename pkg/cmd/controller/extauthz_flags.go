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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/server"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
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

// extAuthzServe says where and what is served.
type extAuthzServe struct {
	address  string
	port     int
	httpPort int
	socket   string
	exchange bool
	drain    time.Duration
}

func (f *extAuthzServe) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "addr", "0.0.0.0", "address that gRPC and HTTP are served at")
	flags.IntVar(&f.port, "port", names.TokenAuthorizerPort, "port of Envoy's gRPC protocol; 0 switches it off")
	flags.IntVar(&f.httpPort, "http-port", 0, "port of the HTTP protocol, for Envoy, nginx and Traefik, under "+server.AuthzPath+"; 0 switches it off")
	flags.StringVar(&f.socket, "unix-socket", "", "path of a Unix socket that serves gRPC in plain text")
	flags.BoolVar(&f.exchange, "sts", false, "exchange tokens by RFC 8693 as well, with POST "+server.TokenPath+" at --http-port")
	flags.DurationVar(&f.drain, "drain", 5*time.Second, "how long to serve on after the end was asked for, while health checks send proxies elsewhere; at most "+maxDrain.String())
}

func (f *extAuthzServe) validate() error {
	switch {
	case f.port == 0 && f.httpPort == 0 && f.socket == "":
		return cli.Usagef("nothing is served: set --port, --http-port or --unix-socket")
	case f.exchange && f.httpPort == 0:
		return cli.Usagef("--sts is served over HTTP: set --http-port")
	case f.drain < 0 || f.drain > maxDrain:
		return cli.Usagef("--drain %s: it must be between 0s and %s, since a Pod has 30 seconds to end", f.drain, maxDrain)
	}
	return nil
}

// reachable reports whether other machines can reach what is served.
func (f *extAuthzServe) reachable() bool {
	ip := net.ParseIP(f.address)
	return (f.port != 0 || f.httpPort != 0) && f.address != "localhost" && (ip == nil || !ip.IsLoopback())
}

func (f *extAuthzServe) endpoints() server.Endpoints {
	at := func(port int) string {
		if port == 0 {
			return ""
		}
		return net.JoinHostPort(f.address, strconv.Itoa(port))
	}
	return server.Endpoints{GRPC: at(f.port), HTTP: at(f.httpPort), Unix: f.socket}
}

// extAuthzTLS secures what is served.
type extAuthzTLS struct {
	cert, key, clientCA string
	clientSANs          []string
}

func (f *extAuthzTLS) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.cert, "tls-cert-file", "", "certificate to serve with, in PEM; without it nothing is encrypted, which is for a proxy in the same Pod")
	flags.StringVar(&f.key, "tls-key-file", "", "key of that certificate, in PEM; both are read again when they change")
	flags.StringVar(&f.clientCA, "client-ca-file", "", "CAs of proxies, in PEM: only those with a certificate may ask for decisions")
	flags.StringSliceVar(&f.clientSANs, "client-san", nil, "with --client-ca-file: names of the proxies that may ask, DNS names, URIs (SPIFFE), IP or mail addresses; empty means every client of the CAs")
}

func (f *extAuthzTLS) validate() error {
	switch {
	case (f.cert == "") != (f.key == ""):
		return cli.Usagef("--tls-cert-file and --tls-key-file belong together")
	case f.clientCA != "" && f.cert == "":
		return cli.Usagef("--client-ca-file needs TLS: set --tls-cert-file and --tls-key-file")
	case len(f.clientSANs) > 0 && f.clientCA == "":
		return cli.Usagef("--client-san needs --client-ca-file: a name proves nothing without a CA")
	}
	return nil
}

func (f *extAuthzTLS) config() *server.TLS {
	if f.cert == "" {
		return nil
	}
	return &server.TLS{CertFile: f.cert, KeyFile: f.key, ClientCAFile: f.clientCA, ClientSANs: f.clientSANs}
}

// extAuthzAnswers say how answers look.
type extAuthzAnswers struct {
	answers server.Answers
}

func (f *extAuthzAnswers) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.answers.Realm, "realm", "hub", "Realm in WWW-Authenticate")
	flags.BoolVar(&f.answers.ErrorResponse, "envoy-error-response", false, "Report internal errors to Envoy v1.37 and newer with status 503 and Retry-After, instead of failing its call")
	flags.BoolVar(&f.answers.Reason, "reason-header", false, "Return the reason of a denial in the header x-ocm-reason")
}

func (f *extAuthzAnswers) server() server.Config { return server.Config{Answers: f.answers} }

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
