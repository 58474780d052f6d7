package driver

import (
	"context"
	"slices"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
)

// Identifier is implemented by the Setup of a driver that identifies a cluster by
// annotations of its ManagedCluster, and grants it an identity outside the API of the hub.
// An administrator accepts the identity, as the key of a certificate with other drivers.
type Identifier interface {
	Setup
	Announcer
	Grantor
	Advisor
	Checker
}

// Announcer is the part of an Identifier about what a ManagedCluster says of itself.
type Announcer interface {
	// Annotations are all annotations of a ManagedCluster that the driver reads.
	Annotations() []string
	// AnnouncedID returns the identity that a ManagedCluster names, empty if it names none.
	// The error is about annotations that contradict each other.
	AnnouncedID(cluster *clusterv1.ManagedCluster) (string, error)
	// Identify returns the identity of a ManagedCluster with what a hub grants to it; nil
	// if it names none. The error says why no hub, or not this hub, can grant it anything.
	// The settings identify the hub.
	Identify(cluster *clusterv1.ManagedCluster, hub HubSettings) (*Identified, error)
	// Announce names an identity in a ManagedCluster, as the agent with that identity does.
	// The settings identify the hub.
	Announce(cluster *clusterv1.ManagedCluster, id string, hub HubSettings) error
	// ID is the identity of an agent with these settings; empty if they are not valid.
	ID(settings operatorv1.RegistrationDriver) string
}

// Grantor is the part of an Identifier about the service where the driver grants.
type Grantor interface {
	// Recorded returns what a grant of the driver gave to its cluster, for tables and files.
	Recorded(grant Grant) (string, error)
	// Hub identifies a hub as an agent with these settings does.
	Hub(settings operatorv1.RegistrationDriver) HubSettings
	// Prepare says what the hub needs there before it can accept clusters, as a sentence,
	// and the arguments of the command that prints it.
	Prepare(hub HubSettings) (need string, args []string)
	// OwnGranter returns a Granter with the credentials that the user of this machine has
	// there, and the name of the user there. It changes nothing. The settings identify the
	// hub.
	OwnGranter(ctx context.Context, hub HubSettings, c client.Client, clock clock.PassiveClock) (granter Granter, user string, err error)
}

// Advisor is the part of an Identifier about what commands say.
type Advisor interface {
	// Words are the names of the driver's parts in commands.
	Words() Words
	// Help is the driver's part of the help of commands.
	Help() Help
	// Short formats an identity for a table column.
	Short(id string) string
	// InitArgs are the arguments of init for a hub with these settings, and a placeholder
	// for what they do not say.
	InitArgs(hub HubSettings) []string
	// JoinArgs are the arguments of join for the clusters of such a hub.
	JoinArgs(hub HubSettings) []string
}

// Words are the names of a driver's parts in commands.
type Words struct {
	// Provider is the service where the driver grants, by its name.
	Provider string
	// Identity and Identities name the identity of a cluster, singular and plural.
	Identity, Identities string
	// Clusters names the clusters that can register through the driver, and Way how
	// they do. Place is where hubs need it, because they sign no certificates there.
	Clusters, Way, Place string
	// Hub names the identifier of a hub for the driver.
	Hub string
	// IDFlag is the flag of join and accept with the identity of a cluster.
	IDFlag string
	// OwnFlag is the flag of accept that uses credentials of the user, and Needs the command
	// that prints which permissions they need.
	OwnFlag, Needs string
}

// Help is the part of a driver in the help of commands. In examples, %[1]s is the name of
// the program.
type Help struct {
	// Accept are paragraphs about what is accepted, and AcceptExamples and InitExamples
	// are examples.
	Accept, AcceptExamples, InitExamples string
}

// Identified is the identity of a cluster on a hub.
type Identified struct {
	// ID is the identity, as annotations name it.
	ID string
	// Key is the one of the Grant: no two clusters may share it.
	Key string
	// Trusted are lines about what the hub trusts once it accepts the cluster.
	Trusted []string
}

// Call is implemented by the error of a call to the service where a driver grants.
type Call interface {
	error

	// Provider is what users call the service.
	Provider() string
	// Operation is the call and its object, as permissions name them.
	Operation() (action, resource string)
	// Answer is the provider's error message; empty if it did not answer.
	Answer() string
	// Unauthorized reports whether the caller has no credential, or may not make the call.
	Unauthorized() bool
}

// Identifiers returns the drivers that identify clusters by annotations.
func (c Catalog) Identifiers() []Identifier {
	var found []Identifier
	for _, s := range c {
		if i, ok := s.(Identifier); ok {
			found = append(found, i)
		}
	}
	return found
}

// Identifier returns a driver if it identifies clusters by annotations, else nil.
func (c Catalog) Identifier(kind AuthType) Identifier {
	for _, i := range c.Identifiers() {
		if i.Type() == kind {
			return i
		}
	}
	return nil
}

// Identifying returns the drivers of a hub that identify clusters, and whether the hub has
// no other driver.
func Identifying(enabled []Enabled) (found []Identifies, only bool) {
	for _, e := range enabled {
		if i, ok := e.Setup.(Identifier); ok {
			found = append(found, Identifies{i, e.Settings})
		}
	}
	return found, len(found) > 0 && len(found) == len(enabled)
}

// Identifies is a driver that a hub has and that identifies clusters.
type Identifies struct {
	Identifier

	Settings HubSettings
}

// Annotations returns the annotations of ManagedClusters that a driver reads.
func (c Catalog) Annotations() []string {
	var keys []string
	for _, i := range c.Identifiers() {
		keys = append(keys, i.Annotations()...)
	}
	return keys
}

// Announced returns the driver by whose annotations a ManagedCluster registers, also when
// they are wrong; nil if it has no such annotation.
func (c Catalog) Announced(cluster *clusterv1.ManagedCluster) Identifier {
	for _, i := range c.Identifiers() {
		if slices.ContainsFunc(i.Annotations(), func(key string) bool { _, ok := cluster.Annotations[key]; return ok }) {
			return i
		}
	}
	return nil
}
