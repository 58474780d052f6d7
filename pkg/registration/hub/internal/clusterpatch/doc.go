// Package clusterpatch writes the parts of a ManagedCluster that the hub's
// controllers share with each other, with users and with the cluster's agent:
// conditions, finalizers and taints.
//
// Each of them is a list that has more than one writer, so a patch carries the
// resource version that was read and names nothing but its list: a writer that
// saw old data gets a conflict and looks again, and no entry of another is ever
// lost or claimed. (Server-side apply would make the writer of one condition
// the owner of whether the other's stays.) A patch that would change nothing is
// not sent.
package clusterpatch
