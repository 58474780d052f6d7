// Package registry answers which registry hosts pull secrets are for.
//
// It owns the list of hosts: those that were configured and those in a watched
// ConfigMap. An empty list is an answer: nothing is written until it has a host,
// and existing pull secrets stay as they are.
//
// Its invariant: the list is sorted and has each host once, so that two lists of
// the same hosts are equal.
package registry
