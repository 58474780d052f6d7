// Package klusterlet is the operator on a managed cluster: it turns a Klusterlet
// into the registration agent with its namespace, rights and configuration,
// keeps them that way, and removes them with the Klusterlet.
//
// A pass is a list of phases over one scope with a single status write at its
// end; deletion goes through what the phases made, backwards. The operator
// never talks to the hub: the agent tells itself, in the condition
// HubConnectionDegraded, how its connection is.
//
// Only the install mode Default is supported. Another mode, or a registration
// driver that this version does not have, changes nothing in the cluster and is
// told in the condition Applied.
package klusterlet
