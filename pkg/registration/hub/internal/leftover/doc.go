// Package leftover finds and removes what still lies in the namespace of a
// cluster that is being detached. It reads metadata only, and live: there may
// be many objects, they are of no interest before a cluster goes, and then they
// must not be missed. A kind that the hub does not serve has no leftovers.
package leftover
