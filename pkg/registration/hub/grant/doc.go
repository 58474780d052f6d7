// Package grant creates, repairs and removes, with the registration drivers, the
// grants that the identity of an accepted cluster depends on outside the hub's API.
// It owns the records of the grants, the finalizer names.FinalizerGrants and the
// condition RegistrationGranted. A cluster whose driver grants nothing has none of
// them.
//
// A record is a ConfigMap in the hub's namespace, which no agent can read or write.
// It is created before the first request to the external service and deleted after
// the last, so that every grant has a record; revocation relies on records only,
// never on fields that a cluster can write. The name of a record is a digest of its
// driver and key, so that the API server rejects a second cluster with one key.
//
// A grant is revoked as soon as the cluster is denied. While a cluster is being
// deleted, the grant stays until the finalizers of acceptance and garbage collection
// are removed, because the agent needs its identity to finish ManifestWorks. The
// grant of a ManagedCluster that was deleted without its finalizers is revoked too.
//
// The package never changes whether the hub accepts a cluster, and acceptance does
// not wait for it: it reports a failure of the external service in its condition
// only. It retries with a back-off of one second to five minutes, and compares
// grants with the external service every hour. It writes nothing to the hub if
// nothing changed. The package is tested in pkg/registration/hub.
package grant
