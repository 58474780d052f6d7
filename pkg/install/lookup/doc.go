// Package lookup reads what is installed in a cluster: the ClusterManager, the Klusterlet
// and single objects. What does not exist is nil and no error. It never writes.
package lookup
