// Package apply updates objects to a desired state by server-side apply and reports the
// changes. It decides whether a write is needed, by a dry run of the API server unless
// the stored state is known to be up to date; the order of stages (dependencies first);
// and the wait for a result. An object whose immutable field differs is replaced.
//
// It never writes when nothing changed, never removes a field that another manager
// added, and never replaces a CRD that a newer release has written. Its invariant:
// after Apply without an error every field of the desired objects has its desired
// value, and fields that this manager applied before and that are no longer desired are
// gone.
package apply
