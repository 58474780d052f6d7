// Package csrapproval approves the registration CSRs that need no person:
// renewals, which an agent requests with the credential that it still holds,
// always; first requests only by users that an admin listed.
//
// A renewal is approved when the requester is the very identity it asks for, is
// the agent that the hub recorded, may renew by RBAC, and belongs to a cluster
// that the hub accepts. A first
// request is approved only while no other has a claim to its name: when a
// request with another requester or key was approved or could be approved
// without a person as well, or when an agent that has the name renews its lease,
// the request is left for a person and an event says so. It is looked at again
// when the conflicting request is denied, fails or is deleted, and when the
// cluster's lease runs out.
//
// Requests are never denied, and the requests of add-ons are not even read. Old
// requests are not deleted here: Kubernetes itself removes approved and
// denied ones after an hour and pending ones after a day, and our agents keep
// the key of a request in flight, so they do not pile up.
package csrapproval
