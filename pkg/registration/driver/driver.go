package driver

import (
	"context"
	"errors"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
)

// Identity is who an agent is on the hub.
type Identity struct {
	// Cluster is the ManagedCluster's name.
	Cluster string
	// Agent distinguishes the agents of one cluster; a new installation is a new agent.
	Agent string
}

// Data is the content of a Secret, by key.
type Data map[string][]byte

// Credential is the common part of the credentials of clusters and of add-ons: how to
// obtain, check, use and report one. Only its driver knows its content.
type Credential interface {
	// Inspect checks the credential in a kubeconfig Secret: it returns the time
	// in which the credential is valid, or an error that says why it is no
	// credential of this identity, wrapping one of package credential's problems.
	// It does not look at the clock.
	Inspect(stored Data) (credential.Validity, error)
	// User returns the user entry of the kubeconfig. It refers to the files of
	// the credential by relative name and contains no secret itself.
	User() clientcmdapi.AuthInfo
	// Renewal is when a credential with an end is renewed.
	Renewal() credential.RenewalPolicy
	// Report is how the state of the credential is reported.
	Report() Report
	// Obtain takes one step toward a new credential and may be called again at any
	// time, by another process as well. pending is the pending data of the previous
	// Step, empty at first. Obtain makes no write on the hub that it could not find
	// again from the pending data: the caller stores Step.Pending before the next call,
	// so that a crash repeats nothing.
	Obtain(ctx context.Context, hub client.Client, pending Data) (Step, error)
}

// Agent is a registration driver on the managed cluster: it obtains the credential
// that the cluster's agent presents to the hub, and connects with it.
type Agent interface {
	Credential
	// Decorate sets the fields of a new ManagedCluster that this driver reads on the
	// hub.
	Decorate(cluster *clusterv1.ManagedCluster)
	// Permissions are the permissions that the bootstrap identity needs on the hub in
	// addition to creating and reading its ManagedCluster.
	Permissions() []authorizationv1.ResourceAttributes
	// Fingerprint names the credential in a hub kubeconfig Secret: two Secrets have the
	// same fingerprint exactly if they have the same credential. It is empty if there
	// is no credential, and it is not secret.
	Fingerprint(stored Data) string
	// Open returns a connection to hub with the credential in stored, and ignores the
	// user entry of hub. Relative paths in hub are relative to dir.
	Open(hub kubeconfig.Hub, dir string, stored Data) (Connection, error)
}

// ErrDenied is wrapped by the error of a request that a Connection did not send
// because the service that grants the credential denied it: the grant does not
// exist yet, or was revoked.
var ErrDenied = errors.New("the credential is not granted")

// Connection is a connection to the hub with a credential.
type Connection interface {
	// Config returns the configuration of clients. Clients made from it keep
	// working after Reload.
	Config() *rest.Config
	// Reload uses the credential in stored for every request from now on.
	// Requests under way may fail and are to be repeated, watches resume.
	Reload(stored Data) error
	// Reset closes every network connection; the next request opens a new one.
	// A network that lost a connection does not report it, and HTTP/2 would wait.
	Reset()
	// Close releases what the connection holds.
	Close()
}

// Step is the outcome of Credential.Obtain: a credential, or what to keep and
// what is being waited for.
type Step struct {
	// Issued is the new credential; nil before the hub has issued it.
	Issued *Issued
	// Pending is to be stored before the next step. A key that is also in the issued
	// Data has the same value here.
	Pending Data
	// Again says that the next step can be taken at once, after storing Pending.
	Again bool
	// Waiting says for whom or what the step waits.
	Waiting Waiting
	// Event is the reason of the event that is recorded when this wait begins,
	// empty for none.
	Event string
	// Watch is the object on the hub, as last seen, whose change triggers another step;
	// nil for none.
	Watch client.Object
	// After is the time until another step even without such a change; zero if only a
	// change can help.
	After time.Duration
	// Failing reports whether Waiting describes a failure, such as a denial, instead of
	// a pending decision or a controller that has not yet acted.
	Failing bool
}

// Waiting is a reason (CamelCase) and a sentence for a condition.
type Waiting struct {
	Reason  string
	Message string
}

// Issued is a credential as it was issued.
type Issued struct {
	// Data are the files that the user entry refers to by relative name; empty
	// for a credential that is not kept in files.
	Data Data
	// Validity is the issued validity, not the requested one.
	Validity credential.Validity
}

// Report defines how the state of a credential is reported to users.
type Report struct {
	// Conditions are the types of the conditions that report it, all with the
	// same content; none if no condition does.
	Conditions []string
	// Valid returns the reason and the message of a condition that is True.
	Valid func(credential.Validity) Waiting
	// Since says that such a condition is dated by the credential's NotBefore,
	// because the message has no room for it.
	Since bool
	// Failed returns the reason and the message of a condition that is False
	// because of what a failing step waits for.
	Failed func(Waiting) Waiting
	// Event is the reason of the event that records a new credential.
	Event string
}

// RequestError is the error of a request for a credential that failed.
type RequestError struct {
	// Reason is CamelCase and the same for the same kind of failure.
	Reason string
	// Message says what to do about it.
	Message string
	// Cause is the hub's answer, or the problem with that answer.
	Cause error
}

// Error implements error.
func (e *RequestError) Error() string { return e.Message + ": " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Cause }
