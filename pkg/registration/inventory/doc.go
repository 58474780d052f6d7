// Package inventory owns what a hub's objects say about its clusters: the stable schema of a
// cluster, what it authenticates with until when, what was granted to it outside the hub,
// and what a person has to decide.
//
// It only reads, and decides nothing.
package inventory
