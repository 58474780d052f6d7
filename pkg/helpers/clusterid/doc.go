// Package clusterid reads the identity of a cluster, which does not depend on what is
// installed. Without permission, or on a cluster without it, the id is empty.
package clusterid
