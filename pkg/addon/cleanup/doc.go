// Package cleanup owns the removal of objects and conditions that earlier drivers of add-ons
// orphaned on the hub. Package inventory finds them.
//
// Its invariant: it removes an object only in the version that was found. It never decides
// what is orphaned.
package cleanup
