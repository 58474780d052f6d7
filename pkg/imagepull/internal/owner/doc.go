// Package owner is the tie between a pull secret and its ServiceAccount.
//
// It owns how the tie is read, in either Form: a pull secret has a label or a type
// that says so, names its ServiceAccount in an annotation, and has an owner reference
// to it that says the same. It writes nothing.
//
// Its invariant: a Secret that lacks one of these is not ours.
package owner
