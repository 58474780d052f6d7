// Package cluster owns the checks of one ManagedCluster on the hub, in the order in which a
// cluster registers: its request, acceptance, credential, lease and add-ons.
//
// It only reads, never contacts the managed cluster, and prints nothing.
package cluster
