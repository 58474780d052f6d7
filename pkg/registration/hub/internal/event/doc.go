// Package event tells users of the hub what its controllers did to a cluster
// or found about it. Events of a ManagedCluster are put into the cluster's
// namespace, where the events of its agent are as well, unless
// there is no such namespace yet: then they are in "default", where Kubernetes
// keeps those of objects without a namespace.
package event
