// Package record reads and writes which agent of a cluster has permissions on the hub.
//
// The record is in the cluster's bindings: their subject is the user of one agent,
// and two annotations name that agent and the time at which its CSR was approved.
// Agents cannot write bindings. The recorded agent is the one whose first request was
// approved last; a request by the user of an agent never introduces an agent. The
// credential of an earlier agent of the cluster, or of another cluster of the same
// name, therefore has no permissions.
//
// OCM, and earlier versions of this project, bind the group of all agents of the
// cluster. Such a binding stays in force until the next approval, also of a renewal,
// names the agent. The package is tested in pkg/registration/hub.
package record
