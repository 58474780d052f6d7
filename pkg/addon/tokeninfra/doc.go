// Package tokeninfra gives an add-on the identity that its tokens are of: a
// ServiceAccount in the namespace of its cluster, and a Role and RoleBinding
// that let the cluster's agent, and nobody else, request tokens of it. It owns
// these three objects and the condition TokenInfrastructureReady, whose message
// tells the agent which ServiceAccount it is, and its UID.
//
// The agent names the ServiceAccount in the add-on's status, and an agent can
// be in the wrong hands. So the name is taken as a choice between two: only
// names.AddOnServiceAccounts are accepted, only in the cluster's own namespace.
// A ServiceAccount that exists without the labels of this add-on's token
// infrastructure is never adopted: it may hold rights that were not meant for
// the add-on. That includes the ServiceAccount of another add-on, when the two
// spellings of two add-ons' names are the same; whoever came first keeps it.
//
// Invariant: a cluster that the hub does not accept, and an add-on that is gone
// or registers by another driver, has none of these objects, so that every token
// ever issued for it is void. An add-on that is being deleted keeps them until
// it is gone, because its agent may need its token to clean up, and one that
// changed to certificates until its agent reports that these are stored.
package tokeninfra
