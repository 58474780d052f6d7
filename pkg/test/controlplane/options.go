package controlplane

import (
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane/pool"
)

// Files in the state directory, in which the programs run.
const (
	auditLog     = "audit.log"
	egressSocket = "egress.sock"
)

// Option changes what Start starts, and Lease and Main lease.
type Option = func(*controlplane.Config)

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

// WithAPIServerArgs adds arguments to the API server's. A test whose arguments name a file
// of its own calls Start: no other test can use such a control plane.
func WithAPIServerArgs(args ...string) Option {
	return func(c *controlplane.Config) { c.APIServerArgs = append(c.APIServerArgs, args...) }
}

// WithAuditLog has the API server write the metadata of all requests to the file
// AuditLog.
func WithAuditLog() Option {
	return WithAPIServerArgs("--audit-policy-file="+pool.AuditPolicy, "--audit-log-path="+auditLog)
}

// WithEgress has the API server reach Services and Pods through an HTTP CONNECT
// proxy on the Unix socket EgressSocket, which the test serves before anything needs it.
func WithEgress() Option {
	return func(c *controlplane.Config) { c.EgressSocket = egressSocket }
}

// WithIssuer gives ServiceAccounts' tokens another issuer than that of all others.
func WithIssuer(issuer string) Option {
	return func(c *controlplane.Config) { c.Issuer = issuer }
}
