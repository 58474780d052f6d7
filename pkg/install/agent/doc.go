// Package agent owns the agent of a managed cluster: how it is installed, what is waited
// for until the cluster has joined its hub, and how an installed agent is found, changed
// and asked. Package leave removes it. It reads no flag, prints nothing and never writes
// to the hub.
package agent
