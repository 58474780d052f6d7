package driver

import (
	"context"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

// Identity is who an agent is on the hub.
type Identity struct {
	// Cluster is the ManagedCluster's name.
	Cluster string
	// Agent tells two agents of one cluster apart; a new installation is a new agent.
	Agent string
}

// Data is the content of a Secret, by key.
type Data map[string][]byte

// Agent obtains and renews the credential that a managed cluster's agent shows
// to the hub.
type Agent interface {
	// Decorate adds to a ManagedCluster that is about to be created what the
	// hub side of this driver needs to know.
	Decorate(cluster *clusterv1.ManagedCluster)
	// Inspect judges the credential in a hub kubeconfig Secret: from when to
	// when it is good, or an error that says why it is no credential of this
	// identity at all, wrapping one of package credential's problems. It does
	// not look at the clock.
	Inspect(stored Data) (credential.Validity, error)
	// Obtain takes one step toward a new credential and may be called again at
	// any time, by another process as well. pending is what the Step before
	// returned, empty at first. Obtain makes no write on the hub that the
	// pending data does not allow to be found again: whoever calls it stores
	// Step.Pending before calling again, so that a crash repeats nothing.
	Obtain(ctx context.Context, hub client.Client, pending Data) (Step, error)
}

// Step is the outcome of Agent.Obtain: a credential, or what to keep and what
// is being waited for.
type Step struct {
	// Issued is the new credential; nil while there is none.
	Issued *Issued
	// Pending is to be stored before the next step.
	Pending Data
	// Again says that the next step can be taken at once, after storing Pending.
	Again bool
	// Waiting says for whom or what the step waits.
	Waiting Waiting
	// Watch is the object on the hub, as last seen, whose change makes another
	// step worth while; nil if there is none.
	Watch client.Object
	// After is when another step is worth while even without such a change;
	// zero if only a change can help.
	After time.Duration
	// Failing says that Waiting is about a failure, such as a refusal, and not
	// about somebody's turn.
	Failing bool
}

// Waiting is a reason (CamelCase) and a sentence for a condition.
type Waiting struct {
	Reason  string
	Message string
}

// Issued is a credential in the form that a kubeconfig Secret holds it.
type Issued struct {
	// Data are the files that User refers to by relative name.
	Data Data
	// User is the user entry of the kubeconfig.
	User clientcmdapi.AuthInfo
	// Validity is what was issued, not what was asked for.
	Validity credential.Validity
}

// Hub vets, grants and revokes on the hub's side.
type Hub interface {
	// Admits reports whether this driver would let the cluster be accepted
	// without a person; all enabled drivers must.
	Admits(ctx context.Context, cluster *clusterv1.ManagedCluster) (bool, error)
	// Grant makes what an accepted cluster's credential depends on outside the
	// hub's own API, and repairs it.
	Grant(ctx context.Context, cluster *clusterv1.ManagedCluster) error
	// Revoke removes what Grant made. An error keeps the cluster's finalizer.
	Revoke(ctx context.Context, cluster *clusterv1.ManagedCluster) error
}
