// Package owner finds the resources of an operator that an object concerns: the
// one that the object was made for, by a label, or all of them. It reads the cache
// and writes nothing.
package owner
