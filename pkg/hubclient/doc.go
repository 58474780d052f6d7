// Package hubclient owns how clients of the agent reach the hub: the address
// and trust of a kubeconfig, and network connections that can be closed while the
// clients live, so that watches resume with another credential and nothing needs
// to be rebuilt. What the credential is, the driver that opens the connection knows.
//
// The package never skips the verification of the hub, and never logs a credential.
package hubclient
