// Package clusterid reads what identifies a cluster for as long as it lives,
// whatever is installed on it or removed from it. It only reads, and what it may
// not read or what a cluster does not have is the empty id.
package clusterid
