// Package inventory lists the pull secrets of a cluster: what they are for, until when
// they are valid, and whether pulls can use them.
//
// It owns the evaluation of a pull secret without its controller: it checks the data by
// the rules of the controller that do not depend on the controller's flags and the
// signing keys. It writes nothing.
//
// Its invariant: no token leaves it.
package inventory
