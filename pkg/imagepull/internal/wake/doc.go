// Package wake lets one controller request the reconciliation of all objects of
// another one, after a change that they all depend on.
//
// Its invariant: a signal is never lost and never blocks; signals that were not
// received yet are merged. It is tested in pkg/imagepull.
package wake
