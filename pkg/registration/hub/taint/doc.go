// Package taint sets the taints that stop placements from choosing a cluster:
// "unreachable" while its availability is unknown, "unavailable" while its API server
// is unavailable, never both. It leaves other taints unchanged, except that it sets
// the time of new ones, as OCM's webhook does.
//
// Unlike OCM's hub, it taints a cluster without the availability condition only when
// the grace period of its lease has passed since its creation. Otherwise each
// joining cluster would be tainted and untainted within seconds.
package taint
