package diagnose

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Commands returns the command lines that outcomes advise to run.
type Commands interface {
	// Command returns a command line of ours for the cluster that is checked.
	Command(args ...string) string
	// Elsewhere returns a command line of ours for a cluster that the user has not named.
	Elsewhere(args ...string) string
	// Kubectl returns a command line of kubectl for the cluster that is checked.
	Kubectl(args ...string) string
}

// Scope is the common input of the checks of one cluster.
type Scope struct {
	Commands

	// Client and Config connect to the API server that is checked, with the permissions of
	// the user.
	Client client.Client
	Config *rest.Config
	Clock  clock.Clock
	// Drivers are the registration drivers that there are.
	Drivers driver.Catalog
	// Warn reports what a check could not read and does without, as a format and its
	// arguments.
	Warn func(format string, args ...any)
}

// OnManagedCluster returns the advice to run a command of ours on the managed cluster.
func (s Scope) OnManagedCluster(args ...string) string {
	return "on the managed cluster: " + s.Elsewhere(args...)
}

// OnHub returns the advice to run a command of ours on the hub.
func (s Scope) OnHub(args ...string) string { return "on the hub: " + s.Elsewhere(args...) }

// Fix returns the advice to run a command. On an installation of another product, which the
// command would break, it returns what manages that.
func Fix(other *origin.Installation, command string) string {
	if other == nil {
		return command
	}
	return "use " + other.Manager()
}

// NotReady is the outcome for a hub whose operator has not installed the APIs yet.
func NotReady(c Commands) finding.Outcome {
	return finding.Bad("wait for it with: "+c.Command("init --wait")+", or see what is wrong with: "+c.Command("check hub"),
		"the hub is not ready: its operator has not installed the APIs yet")
}

// NoAddOns is the result of add-on checks for a hub that does not serve add-ons.
const NoAddOns = "this hub serves no add-ons"

// ServesAddOns reports whether the hub is known to serve ManagedClusterAddOns.
func (s Scope) ServesAddOns() bool {
	served, err := lookup.Serves(s.Client, schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ManagedClusterAddOn"))
	return err == nil && served
}
