// Package wake lets one part of the controllers have another one look at all of
// its objects, because something changed that they all depend on.
//
// Its invariant: a call is never lost and never blocks; calls that nobody has
// answered yet are one.
package wake
