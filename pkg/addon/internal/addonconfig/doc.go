// Package addonconfig owns what the add-on manager knows about the configurations of
// add-ons: the kinds that mean something to it, how they are read, and the hash by which
// every party recognizes a version of one. It never reads a cluster.
package addonconfig
