package controlplane

import (
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

// Option changes what Start and Main start.
type Option func(*controlplane.Config)

// WithoutSigner imitates a hub that signs no client certificates: a request for
// the signer kubernetes.io/kube-apiserver-client is never issued.
func WithoutSigner() Option {
	return func(c *controlplane.Config) { c.NoClientSigner = true }
}

// WithCertDuration limits the life of the certificates that the signers issue.
// It may be shorter than the ten minutes that a request can ask for.
func WithCertDuration(d time.Duration) Option {
	return func(c *controlplane.Config) { c.CertDuration = d }
}

// WithScheduler also runs the scheduler.
func WithScheduler() Option {
	return func(c *controlplane.Config) { c.Scheduler = true }
}

// WithAPIServerArgs adds arguments to the API server's.
func WithAPIServerArgs(args ...string) Option {
	return func(c *controlplane.Config) { c.APIServerArgs = append(c.APIServerArgs, args...) }
}

// WithEgress has the API server reach Services and Pods through an HTTP CONNECT
// proxy on a Unix socket, which the test serves before anything needs it.
func WithEgress(socket string) Option {
	return func(c *controlplane.Config) { c.EgressSocket = socket }
}

// WithIssuer gives ServiceAccounts' tokens another issuer than that of all others.
func WithIssuer(issuer string) Option {
	return func(c *controlplane.Config) { c.Issuer = issuer }
}
