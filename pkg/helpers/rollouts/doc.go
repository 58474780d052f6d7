// Package rollouts evaluates OCM's rollout strategies: whose turn it is, given the
// decisions of a placement and how far each of its clusters has come. The rules are
// those of OCM's sdk-go.
//
// It never decides how far a cluster has come, and changes nothing.
package rollouts
