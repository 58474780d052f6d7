// Package agent applies the ManifestWorks of one cluster to that cluster, and reports to
// the hub what became of them.
//
// It owns the connection to the hub by a kubeconfig file that others renew, the
// AppliedManifestWorks that record what belongs to a work, the removal of what no work
// has any more, and the status of the works. What a work says and what is reported about
// it are rules of pkg/work/manifest and pkg/work/status.
//
// It applies a manifest again only after the manifest or the object has changed, and makes
// no request while nothing does. It never deletes an object that a user of the cluster
// has replaced, or that another work owns too, and never acts for an executor that could
// not act itself.
//
// A pass over a work is a list of phases (pass.go). Phases know an object of the work by one
// type, object, which joins three sources with their own lifetimes: the manifest, for one
// pass; the memory in the record of the work, for one connection to the hub; and the
// inventory of the cluster, which all works share, for the process. Losing the memory costs
// a read of each object. Only an AppliedManifestWork outlives the process. Phases report to
// requeue when the work must be reconciled again without an event.
//
// Its invariant: an object that the agent created has an owner reference to an
// AppliedManifestWork with a finalizer, unless its work orphans it, so that deleting the
// work or the AppliedManifestWork deletes it whenever the agent was interrupted.
package agent
