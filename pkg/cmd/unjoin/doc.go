// Package unjoin is the "unjoin" command: it takes a cluster out of the fleet,
// on the managed cluster, on the hub, or on both. It never reports success for
// something that is still there.
package unjoin
