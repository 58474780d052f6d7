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

// Credential is what is common to the credentials of clusters and of add-ons:
// how one is obtained, checked, used and reported. What it consists of, only its
// driver knows.
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
	// Obtain takes one step toward a new credential and may be called again at
	// any time, by another process as well. pending is what the Step before
	// returned, empty at first. Obtain makes no write on the hub that the
	// pending data does not allow to be found again: the caller stores
	// Step.Pending before it calls again, so that a crash repeats nothing.
	Obtain(ctx context.Context, hub client.Client, pending Data) (Step, error)
}

// Agent is a registration driver on the managed cluster: it obtains the credential
// that the cluster's agent presents to the hub, and connects with it.
type Agent interface {
	Credential
	// Decorate sets the fields of a new ManagedCluster that this driver reads on the
	// hub.
	Decorate(cluster *clusterv1.ManagedCluster)
	// Permissions are what the bootstrap identity needs on the hub in addition
	// to creating and reading its ManagedCluster.
	Permissions() []authorizationv1.ResourceAttributes
	// Fingerprint names the credential in a hub kubeconfig Secret: it is equal
	// for two Secrets exactly if they hold the same credential, and empty if
	// there is none. It is no secret.
	Fingerprint(stored Data) string
	// Open returns a connection to hub with the credential in stored; the user
	// entry of hub is ignored. Relative files of hub are looked for in dir.
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
	// Issued is the new credential; nil while there is none.
	Issued *Issued
	// Pending is to be stored before the next step. A key that the issued
	// Data will have as well holds here what it will hold there.
	Pending Data
	// Again says that the next step can be taken at once, after storing Pending.
	Again bool
	// Waiting says for whom or what the step waits.
	Waiting Waiting
	// Event is the reason of the event that is recorded when this wait begins,
	// empty for none.
	Event string
	// Watch is the object on the hub, as last seen, whose change makes another
	// step worth while; nil if there is none.
	Watch client.Object
	// After is when another step is worth while even without such a change;
	// zero if only a change can help.
	After time.Duration
	// Failing says that Waiting is about a failure, such as a denial, and not
	// about a decision or a controller that is still to come.
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
	// Validity is what was issued, not what was asked for.
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
	// Cause is what the hub answered, or what is wrong with its answer.
	Cause error
}

// Error implements error.
func (e *RequestError) Error() string { return e.Message + ": " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Cause }
