// Package agent owns the life of a managed cluster's registration agent: it
// finds out who it is, asks its driver for a credential of the hub, stores it,
// and with it keeps the cluster's lease and status on the hub, renews it in time and
// asks again when it was lost. All of that happens in one process: nothing is
// ever solved by a restart, and a restart at any point goes on where the last
// process was.
//
// The truth is in the managed cluster: the bootstrap Secret, the hub kubeconfig
// Secret and the pending Secret, in which a request's private key is stored
// before the request is made. What the agent waits for is told in its phase, in
// the Klusterlet's HubConnectionDegraded condition and in events.
//
// On the hub the agent never deletes, never creates a lease and never touches
// taints, nor labels but when it creates its ManagedCluster.
package agent
