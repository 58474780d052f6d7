// Package tokeninfra creates the token infrastructure of an add-on: a ServiceAccount in
// the namespace of its cluster, and a Role and RoleBinding that let only the cluster's
// agent request its tokens. It owns these three objects and the condition
// TokenInfrastructureReady, whose message names the ServiceAccount and its UID.
//
// The agent names the ServiceAccount in the add-on's status, and an agent can be
// compromised. The package therefore accepts only names.AddOnServiceAccounts, only in
// the cluster's own namespace. It never adopts a ServiceAccount without the labels of
// this add-on's token infrastructure, which may have other permissions. That includes
// the ServiceAccount of another add-on with the same derived name; the first one
// retains it.
//
// Invariant: a cluster that the hub does not accept, and an add-on that is gone or
// registers with another driver, has none of these objects, so that all of its tokens
// are invalid. They are retained for an add-on that is being deleted, whose agent may
// need its token to clean up, and after a change to certificates until the agent
// reports that these are stored. The package is tested in pkg/addon.
package tokeninfra
