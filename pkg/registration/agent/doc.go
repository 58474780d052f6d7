// Package agent owns the life cycle of a managed cluster's registration agent: it
// determines its identity, obtains a credential of the hub from its driver, stores
// it, renews the cluster's lease and status on the hub with it, renews it in time and
// replaces it if it was lost. All of this happens in one process: no failure needs a
// restart, and a restarted process continues where the last one stopped.
//
// All state is in the managed cluster: the bootstrap Secret, the hub kubeconfig Secret
// and the pending Secret, which stores the private key of a CSR before the CSR is
// created. The agent reports its state in its phase, in the Klusterlet's
// HubConnectionDegraded condition and in events.
//
// On the hub the agent never deletes an object, never creates a lease, never changes
// taints, and sets labels only when it creates its ManagedCluster.
package agent
