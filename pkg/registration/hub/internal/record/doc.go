// Package record knows which agent of a cluster has rights on the hub.
//
// The record is the cluster's own bindings: their subject is the user of one
// agent, and two annotations name that agent and the time at which its request
// was approved. Agents cannot write bindings. The agent whose first request was
// approved last is the one; a request that an agent's user made introduces
// nobody. So a credential that an earlier agent of the cluster, or another
// cluster of the same name, still holds is worth nothing.
//
// OCM, and earlier versions of this project, bind the group of all agents of
// the cluster. Such a binding stays in force until the next approval, of a
// renewal as well, names the agent.
package record
