// Package connection owns how the agent's clients reach the hub: the address
// and trust of a kubeconfig, and a credential that can be exchanged while the
// clients live. After Rotate every new request shows the new certificate and
// every old connection is closed, so watches resume with it and nothing needs
// to be rebuilt.
//
// It never skips the verification of the hub, and never logs a credential.
package connection
