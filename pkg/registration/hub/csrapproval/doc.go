// Package csrapproval approves registration CSRs automatically: renewals, which an
// agent requests with its current credential, and first requests of the users that
// the administrator listed.
//
// A renewal is approved when the requester is the identity that it requests and the
// agent that the hub recorded, RBAC allows it to renew, and the hub accepts its
// cluster. A first request is approved only without a conflict: if a request for the
// cluster with another requester or key was approved or could be approved
// automatically, or if the agent of the cluster renews its lease, the request stays
// pending and an event reports the conflict. It is evaluated again when the
// conflicting request is denied, fails or is deleted, and when the cluster's lease
// expires.
//
// The package never denies a CSR, and does not read those of add-ons. It deletes
// none either: Kubernetes removes approved and denied CSRs after an hour and pending
// ones after a day, and an agent reuses the key of its pending CSR, so that CSRs do
// not accumulate.
package csrapproval
