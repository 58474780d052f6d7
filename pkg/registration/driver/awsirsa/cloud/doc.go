// Package cloud owns the calls to IAM and EKS with which a hub keeps the roles of
// its managed clusters and their access entries: one method for each thing that is
// read or changed, errors that are sentences for users, and the metric of calls.
//
// It decides nothing: what a role has to be like is package identity's, when it is
// changed is the driver's. It never logs, and its errors have no request IDs and
// no session names, so that one failure has one text.
package cloud
