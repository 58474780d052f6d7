// Package issuer is the way of the clusters' token issuers to the hub: publish
// runs on a managed cluster and writes its issuer and keys into its namespace on
// the hub, trust runs on the hub and says which of them are trusted.
//
// The token authorizer reads the same objects and decides for itself; nothing
// here ever verifies a token of a workload.
package issuer
