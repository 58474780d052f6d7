// Package taint keeps the taints that stop placements from choosing a cluster
// which cannot be worked with: "unreachable" while its state is unknown,
// "unavailable" while its API server is. The two exclude each
// other. Taints of others are left as they are, but for the time that upstream's
// webhook would add to a new one.
//
// One difference to OCM's hub: a cluster of which nothing is known yet is
// tainted only when the grace period of its lease has passed since it was
// created, not at once. Else every cluster would be written twice while it
// joins, only to set a taint that is wrong seconds later.
package taint
