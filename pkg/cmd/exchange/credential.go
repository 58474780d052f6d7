package exchange

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/stsclient"
)

// early is how long before its end a credential is given up: a request that
// leaves with it must still arrive.
const early = 10 * time.Second

// credential is one call of the command.
type credential struct {
	env       cli.Env
	server    string
	caFile    string
	tokenFile string
	audiences []string
	timeout   time.Duration
}

func newCredential(env cli.Env) *cobra.Command {
	c := &credential{env: env}
	cmd := &cobra.Command{
		Use:   "credential --server URL --token-file FILE",
		Short: "Print a hub credential for a workload's kubeconfig",
		Long: `Print a credential for the hub, for the "exec" section of a workload's
kubeconfig: the workload's own ServiceAccount token is exchanged at the token
service of the token authorizer (RFC 8693). No proxy is needed.

Nothing is kept on disk; the Kubernetes client asks again before the credential
ends. The token must be made for the authorizer's audience: mount it with a
projected volume.`,
		Example: `  # users[0].user of the workload's kubeconfig:
  exec:
    apiVersion: client.authentication.k8s.io/v1
    interactiveMode: Never
    command: kubectl-ocm
    args:
    - exchange
    - credential
    - --server=https://token-authorizer.example.com:9002
    - --ca-file=/var/run/hub/ca.crt
    - --token-file=/var/run/secrets/hub/token`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.server, "server", "", "URL of the token service; without a path it is "+server.TokenPath)
	flags.StringVar(&c.caFile, "ca-file", "", "PEM bundle that verifies the token service; the system's roots if not given")
	flags.StringVar(&c.tokenFile, "token-file", "", "File with the ServiceAccount token, read at each call")
	flags.StringSliceVar(&c.audiences, "audience", nil, "Audiences that the credential must have; an error if the rule grants fewer")
	flags.DurationVar(&c.timeout, "timeout", 15*time.Second, "how long to try")
	return cmd
}

func (c *credential) run(ctx context.Context) error {
	client, err := c.complete()
	if err != nil {
		return err
	}
	version, err := c.env.ExecCredentialVersion()
	if err != nil {
		return err
	}
	token, err := c.env.ReadSecret(c.tokenFile)
	if err != nil {
		return &cli.Explained{
			Problem: "the ServiceAccount token cannot be read", Code: cli.CodeNotFound, Cause: err,
			Try: "mount it with a projected volume: sources serviceAccountToken, with the authorizer's audience",
		}
	}
	if token == "" {
		return cli.NotFoundf("the kubelet fills the file of a projected volume; is this one?", "%s is empty", c.tokenFile)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	issued, err := client.Exchange(ctx, token, c.audiences)
	if err != nil {
		return c.explain(err)
	}
	return c.env.PrintExecCredential(version, issued.Value, issued.Expires.Add(-early))
}

// complete checks the flags and returns a client of the token service.
func (c *credential) complete() (*stsclient.Client, error) {
	var problems []error
	service, err := url.Parse(c.server)
	switch {
	case c.server == "":
		problems = append(problems, cli.Usagef("--server is missing: the URL of the token authorizer's token service"))
	case err != nil || service.Scheme != "https" || service.Host == "" || service.User != nil:
		problems = append(problems, cli.Usagef("--server must be an https:// URL: a token is not sent in the clear"))
	case service.Path == "" || service.Path == "/":
		service.Path = server.TokenPath
	}
	if c.tokenFile == "" {
		problems = append(problems, cli.Usagef("--token-file is missing: the file with the workload's ServiceAccount token"))
	}
	if c.timeout <= 0 {
		problems = append(problems, cli.Usagef("--timeout must be more than 0"))
	}
	client, err := verifying(c.caFile)
	if problems = append(problems, err); errors.Join(problems...) != nil {
		return nil, errors.Join(problems...)
	}
	return &stsclient.Client{URL: service.String(), HTTP: client, Clock: c.env.Clock}, nil
}

// verifying returns a client for servers that --ca-file verifies, or the roots of the
// system without one.
func verifying(caFile string) (*http.Client, error) {
	var roots *x509.CertPool
	if caFile != "" {
		data, err := cli.ReadFile(caFile)
		if err != nil {
			return nil, cli.Usagef("--ca-file: %v", err)
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(data) {
			return nil, cli.Usagef("--ca-file: %s holds no PEM certificate", caFile)
		}
	}
	return stsclient.NewHTTP(&http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: 10 * time.Second,
		ForceAttemptHTTP2:     true,
	}), nil
}

// explain says what to do about a denial.
func (c *credential) explain(err error) error {
	var refused *stsclient.Error
	if !errors.As(err, &refused) {
		return cli.Explain(err)
	}
	explained := &cli.Explained{Problem: refused.Error(), Code: cli.CodeFailed}
	switch {
	case refused.Temporary():
		explained.Try = "try again; the authorizer's log and metrics say what it waits for"
		explained.Code = cli.CodeTimeout
	case refused.Code == "invalid_target":
		explained.Try = "leave out --audience, or have the rule's target name that audience and an account that exists"
	case refused.Code == "invalid_request":
		explained.Try = "ask why on the hub: " + c.env.Elsewhere("exchange explain -") + " < TOKEN-FILE; the authorizer's audit log has the request id"
	case refused.Code == "invalid_answer":
		explained.Try = "check --server: is the token service switched on there?"
	}
	return explained
}
