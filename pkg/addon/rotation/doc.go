// Package rotation owns how add-ons are requested to replace their credentials: the time in
// the annotation of the ManagedClusterAddOn, and which registrations still have the earlier
// credential.
//
// It issues no credential: the agent of the cluster replaces its own.
package rotation
