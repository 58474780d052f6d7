// Package cleanup deletes the ManagedClusters that are left over when clusters
// unjoin: the hub had accepted them, does not accept them any more,
// and has not for a given time. It runs once; a CronJob repeats it. It never
// touches a cluster that was never accepted or that somebody accepted again
// meanwhile, and removes no finalizer: the hub's controllers do so for a cluster
// that noted that it left.
package cleanup
