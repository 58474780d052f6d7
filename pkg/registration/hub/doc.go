// Package hub is the hub's side of registration: it puts together the
// controllers that accept clusters, have their identities granted, judge their
// leases, taint and label them and clear up after them, and says what they need
// to have in the cache. Controllers that only one registration driver needs come
// with the driver: the package names none. Each controller is a package of its own below; they
// meet only through the API server.
//
// The cache holds what is looked at and no more: of namespaces only metadata,
// of everything that belongs to a cluster only what carries the cluster's label,
// of leases only those of clusters. Nothing is resynced; what depends on time
// has a timer. A hub on which nothing happens writes nothing.
package hub
