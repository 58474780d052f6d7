// Package hub owns how a hub is installed in a cluster and removed from it: what init and
// clean do behind their flags, and what unjoin does on the hub. It reads no flag, prints
// nothing and changes no managed cluster.
package hub
