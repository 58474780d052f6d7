// Package registry answers which registry hosts pull secrets are for.
//
// It owns the list of hosts: those that were configured, those in a watched
// ConfigMap, the names and addresses of watched Services, and the hosts of Routes
// of OpenShift. An empty list is an answer: nothing is written until it has a host,
// and existing pull secrets stay as they are.
//
// Its invariants: the list is sorted and has each host once, so that two lists of
// the same hosts are equal; it has no host before every source was asked, so that a
// controller that starts takes no host away; what does not exist has no hosts and
// holds nothing up.
package registry
