// Package orphan finds and removes the objects that remain in the namespace of a
// cluster that is being detached. It reads metadata only, and from the API server:
// there may be many objects, no controller needs them in a cache before, and none
// must be missed. A kind that the hub does not serve has no objects.
package orphan
