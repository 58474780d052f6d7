// Package addonconfig owns the add-on manager's knowledge of add-on configurations: the
// kinds that it supports, how to read them, and the hash that identifies a version of
// one to every party. It never reads a cluster.
package addonconfig
