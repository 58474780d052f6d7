// Package registry lists the registry hosts of pull secrets.
//
// It owns the list of hosts: configured hosts, those in a watched ConfigMap, the names
// and addresses of watched Services, and the hosts of OpenShift Routes. An empty list
// is valid: nothing is written until it has a host, and existing pull secrets stay
// unchanged.
//
// Its invariants: the list is sorted and has each host once, so that two lists of the
// same hosts are equal; it has no host before every source was read, so that a starting
// controller removes no host; missing objects contribute no hosts and block nothing.
package registry
