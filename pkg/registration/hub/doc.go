// Package hub sets up the registration controllers of the hub, which accept
// clusters, grant their identities, evaluate their leases, taint and label them and
// clean up after them, and the options of their cache. Controllers that only one
// registration driver needs are set up by the driver: this package names none. Each
// controller is a package of its own; they interact only through the API server.
//
// The cache has only the objects that the controllers read: metadata of namespaces,
// objects with the label of a cluster, and the leases of clusters. There is no
// periodic resync; deadlines are timers. An idle hub writes nothing.
package hub
