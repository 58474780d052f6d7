package join

import (
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
)

// Plan describes a join.
type Plan struct {
	// Agent is the desired agent. Run fills in its bootstrap kubeconfig.
	Agent agent.Values
	// Endpoint is the hub, and how to verify it. With an administrator, the address and the CA
	// follow from that connection where they are not given.
	Endpoint bootstrap.Endpoint
	// Token is the bootstrap token; an administrator creates it.
	Token bootstrap.Token
	// Change is the desired change of an installed agent.
	Change Change
	// ChangeHub lets a cluster that has joined a hub leave it for another one.
	ChangeHub bool
	// Internal has the agent use the address in the hub's cluster-info.
	Internal bool
	// TokenLife is how long a token is valid that the administrator creates; 0 is the default.
	TokenLife time.Duration
	// Until is the state that Run waits for.
	Until Until

	// stored is set if Token is the one that the agent has already.
	stored bool
}

// Change is the desired change of an installed agent.
type Change string

// The changes.
const (
	// Repair installs an agent, or updates an installed one.
	Repair Change = ""
	// Refresh requires an agent, and retains what the plan does not name: its name, hub and
	// token.
	Refresh Change = "Refresh"
	// Rotate is Refresh, and has the agent register again, under another agent name and with
	// another key.
	Rotate Change = "Rotate"
)

// Until is the state that a join waits for.
type Until string

// The states. An administrator's join always waits until the cluster has joined.
const (
	// Installed waits for nothing.
	Installed Until = ""
	// KeyMade looks for the key of the agent for some seconds.
	KeyMade Until = "KeyMade"
	// Requested waits until the hub has the request of the agent.
	Requested Until = "Requested"
	// Joined waits until the hub shows the cluster as joined and available.
	Joined Until = "Joined"
)

// Result describes the outcome of a join. It is valid next to an error as well.
type Result struct {
	// Cluster is the name of the cluster, and Hub the address of the hub.
	Cluster, Hub string
	// Changes are the objects that the join applied to the cluster.
	Changes apply.ChangeSet
	// HasKey is set if the agent registers with a key, and Key is the fingerprint of that, if it
	// is known.
	HasKey bool
	Key    string
	// Accept are the arguments of the command that accepts the cluster on the hub.
	Accept []string
	// AutoAccepted is the time at which the hub accepted the cluster by itself; empty if it
	// did not.
	AutoAccepted string
	// Unrevoked is the token that the administrator created and that the agent may still need;
	// its ID is empty if there is none.
	Unrevoked bootstrap.Token
}

// WaitError says what a join was waiting for when its time was over.
type WaitError struct {
	// Waiting names it, as in "the hub to accept the cluster".
	Waiting string
	// Accept are the arguments of the command that accepts the cluster on the hub.
	Accept []string
	Cause  error
}

// Error implements error.
func (e *WaitError) Error() string { return "waiting for " + e.Waiting + ": " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *WaitError) Unwrap() error { return e.Cause }
