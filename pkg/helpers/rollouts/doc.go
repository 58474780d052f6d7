// Package rollouts evaluates OCM's rollout strategies: it selects the clusters to
// update now, given the decisions of a placement and the progress of each of its
// clusters. The rules are those of OCM's sdk-go.
//
// It never decides the progress of a cluster, and changes nothing.
package rollouts
