// Package inventory looks at the pull secrets of a cluster: what they are for, until
// when, and whether pulls can use them.
//
// It owns what is known of a pull secret without its controller: it judges the data
// by the rules of the controller, but for what only the controller's flags and the
// signing keys say. It writes nothing.
//
// Its invariant: no token leaves it.
package inventory
