package join

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
)

// Joiner joins the cluster of its Runner to hubs.
type Joiner struct {
	agent.Runner

	// Connect returns a client for a hub.
	Connect func(*rest.Config) (client.Client, error)
	// Admin is the connection of the hub's administrator; nil if there is none.
	Admin *Admin
	// Accept has the administrator accept a cluster; nil is the approver's own Run.
	Accept func(ctx context.Context, by *approval.Approver, cluster string) error
	// Program is the name of the program in the conditions of requests that it approves.
	Program  string
	Observer Observer
}

// Admin is a connection of a hub's administrator.
type Admin struct {
	Client client.Client
	Config *rest.Config
	// Name names the hub in messages, and Init is the command that makes its cluster a hub.
	Name, Init string
}

// Observer learns what a user should know while a join runs.
type Observer interface {
	// Warn reports something that does not stop the join, as a format and its arguments.
	Warn(format string, args ...any)
	// Review is called with the complete values before anything is written to the cluster; an
	// error stops the join.
	Review(values agent.Values) error
	// Applied is called when the agent's objects are as wanted.
	Applied(ctx context.Context, changes apply.ChangeSet) error
	// Rotating is called before the agent loses its certificate.
	Rotating()
	// AwaitingAcceptance is called before the join waits for an administrator of the hub.
	// args are the arguments of the command that accepts the cluster; key is empty if the
	// agent has none.
	AwaitingAcceptance(key string, args []string)
}
