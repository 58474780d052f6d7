// Package event records events about ManagedClusters. They are in the cluster's
// namespace, together with the events of its agent, or in "default" as long as
// there is no such namespace: Kubernetes records events of objects without a
// namespace there.
// The package is tested in pkg/registration/hub.
package event
