// Package csrapproval approves the registration CSRs that need no person
// (contract B.5): renewals, which an agent requests with the credential that it
// still holds, always; first requests only by users that an admin listed.
//
// A renewal is approved when the requester is the very identity it asks for,
// may renew by RBAC, and belongs to a cluster that the hub accepts. A first
// request is approved only while nothing else claims its name: when another
// requester or another key does, or when a live agent has it, the request is
// left for a person and an event says so.
//
// Requests are never denied, and the requests of add-ons are not even read. Old
// requests are not deleted here either: Kubernetes itself removes approved and
// denied ones after an hour and pending ones after a day, and our agents keep
// the key of a request in flight, so they do not pile up.
package csrapproval
