package driver

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
)

// Checker is the part of an Identifier that checks an installation. It looks at the API of
// the hub only, with the permissions of the user.
type Checker interface {
	// CheckHub returns the checks of a hub. manager is read when they are made.
	CheckHub(scope CheckScope, manager *operatorv1.ClusterManager) []finding.Step
	// CheckCluster returns the checks of a cluster that registers by the driver: of what it
	// announces, and of what the hub granted to it. cluster is read when they are made.
	CheckCluster(scope CheckScope, cluster *clusterv1.ManagedCluster) (announced, granted []finding.Step)
}

// CheckScope is the input of a driver's check from the command that runs it.
type CheckScope struct {
	// Client reads the hub.
	Client client.Client
	// Command, Elsewhere and Kubectl return command lines: for the hub, for a cluster that
	// the user has not named, and of kubectl for the hub.
	Command, Elsewhere, Kubectl func(args ...string) string
	// Fix returns what to try instead of a command that changes the hub, if another product
	// runs it; else the command.
	Fix func(command string) string
	// Foreign reports whether another product runs the hub.
	Foreign func() bool
	// Allowed reports whether a ServiceAccount may do something.
	Allowed func(ctx context.Context, account types.NamespacedName, what authorizationv1.ResourceAttributes) (bool, error)
	// Granted returns the grants of a driver that the hub recorded.
	Granted func(ctx context.Context, kind AuthType) ([]Grant, error)
}
