// Package cloud owns the calls to IAM and EKS with which a hub keeps the roles of
// its managed clusters and their access entries: one method for each thing that is
// read or changed, errors that are sentences for users, and the metric of calls.
//
// It decides nothing: package identity defines the roles, and the driver decides when
// they change. It never logs, and its errors have no request IDs and no session names,
// so that the same failure always has the same text.
//
// The package is tested with the driver, in pkg/registration/driver/awsirsa.
package cloud
