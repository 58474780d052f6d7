// Package strategy brings one object of a cluster to what a manifest says, by the update
// strategy of the manifest. It owns the requests of each strategy, what they keep of the
// existing object, and the owner reference that decides what deleting the ManifestWork
// deletes.
//
// It never decides whether an object needs to be looked at, and never deletes one.
//
// Its invariant: an object that already is as the manifest says is not written.
package strategy
