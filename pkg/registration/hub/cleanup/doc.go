// Package cleanup deletes the ManagedClusters that remain when clusters unjoin: the
// hub accepted them once and has denied them for a given time. It runs once; a
// CronJob repeats it. It never deletes a cluster that was never accepted or that was
// accepted again, and removes no finalizer: the hub's controllers do so for a
// cluster with names.AnnotationLeft.
package cleanup
