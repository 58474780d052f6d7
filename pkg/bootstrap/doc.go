// Package bootstrap owns the first contact between a managed cluster and a hub:
// it verifies the hub before any credential is sent, creates, lists and revokes
// bootstrap tokens (get token prints one), and builds the kubeconfig that an agent joins with.
//
// Its invariant is "trust first, credentials second": Discover sends neither
// token nor password, and only its result, a hub whose certificate was verified
// against what the user pinned, can be turned into a connection that does.
// Tokens appear in no error and no log.
package bootstrap
