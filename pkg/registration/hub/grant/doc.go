// Package grant has the registration drivers make, repair and remove what the
// identity of an accepted cluster depends on outside the hub's own API. It owns
// the records of the grants, the finalizer names.FinalizerGrants and the condition
// RegistrationGranted. A cluster whose driver grants nothing has none of them.
//
// A record is a ConfigMap in the hub's own namespace, which no agent reads or
// writes. It is made before the first request to the outside service and deleted
// after the last, so that whatever exists there is in a record; revocation goes by
// records alone, never by what a cluster says about itself. The name of a record is
// the digest of its driver and key: the API server itself refuses the second
// cluster with one key.
//
// What an accepted cluster had is revoked as soon as the cluster is denied. Of a
// cluster that is being deleted it is revoked when acceptance and garbage
// collection have let the cluster go, because its agent needs the identity to
// finish its ManifestWorks. A record whose ManagedCluster is gone, because somebody
// took its finalizers away, is revoked too.
//
// The package never changes whether the hub accepts a cluster, and nothing that
// does waits for it: an outside service that fails shows in its condition only. It
// retries with a back-off of one second to five minutes and looks every hour for
// what somebody changed outside. A look that finds everything in order writes
// nothing to the hub.
package grant
