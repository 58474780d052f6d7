// Package pullsecrets is the flags that say how image pull secrets are kept: those
// of the controller, which "pull-secrets install" has as well and hands on to it.
//
// It owns what the flags are called, what they default to, and what is said about
// wrong ones. It never reaches a cluster.
package pullsecrets
