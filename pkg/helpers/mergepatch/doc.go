// Package mergepatch writes some fields of an object by a JSON merge patch (RFC 7386),
// in a few bytes and without a copy of the object to compare with. A patch has the UID
// and the resource version that were read: a writer with stale data gets a conflict, and
// never overwrites a concurrent change of a list. It is tested with the controllers, on
// real API servers.
package mergepatch
