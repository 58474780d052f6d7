// Package legacytoken finds the Secrets with ServiceAccount tokens that never expire
// (type kubernetes.io/service-account-token), assesses their use, and takes them out of
// service in steps that can be undone.
//
// It owns the inventory of these Secrets with an assessment of each, the handover of the
// pull secrets with their tokens to the pull secret controller, the label with which the
// API server rejects a token, and backups. It requests no token: the controller does. It
// works on any cluster, with the permissions of its user.
//
// Its invariants: a token is in memory only for comparisons, and leaves the package only
// in a backup; every write is conditional on the object that was evaluated; a Secret is
// deleted only while it is quarantined, after its backup was written.
package legacytoken
