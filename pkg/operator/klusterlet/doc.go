// Package klusterlet is the operator on a managed cluster: it turns a Klusterlet
// into the registration agent and the work agent with their namespace, rights and
// configuration, repairs drift, and removes them with the Klusterlet.
//
// A pass is a list of phases over one scope with a single status write at its end;
// deletion undoes the phases in reverse order. The operator never connects to the hub:
// the agent reports the state of its connection in the condition HubConnectionDegraded,
// and the work agent has no pods until that reports that the hub accepted the cluster.
// The operator holds the permissions that it grants and no more:
// join decides what the work agent may do, and a Klusterlet that asks for more is
// reported in the condition Applied.
//
// Only the install mode Default is supported. Another mode, or a registration
// driver that this version does not have, changes nothing in the cluster and is
// reported in the condition Applied.
package klusterlet
