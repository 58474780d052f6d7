// Package inventory knows which objects of ManifestWorks exist on a cluster, and what
// has changed about them. It owns one watch of metadata per resource in use, which it
// starts with the first subscription and stops after the last one, and the little that
// it keeps of each object: identity, versions and owners.
//
// It keeps only objects with a subscriber and objects with an
// AppliedManifestWork among their owners; it never has the content of an object, and
// never writes.
//
// Its invariant: a subscriber is notified after every change of its objects that a
// manifest or a rule about status could concern, so nothing needs to be polled.
package inventory
