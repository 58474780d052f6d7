// Package legacytoken finds the Secrets that hold a token of a ServiceAccount
// which never expires (type kubernetes.io/service-account-token), says what is
// known about their use, and takes them out of service in steps that can be undone.
//
// It owns the inventory of these Secrets with a verdict for each, the handover of
// the pull secrets that they feed to the pull secret controller, the label with
// which the API server refuses a token, and backups. It requests no token: the
// controller does. It works on any cluster, with the permissions of its user.
//
// Its invariants: no token is kept longer than it takes to compare it, and none
// leaves the package but into a backup; every write is conditional on what was
// decided about; a Secret is deleted only while it is quarantined, after its backup
// was written.
package legacytoken
