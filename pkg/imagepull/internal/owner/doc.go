// Package owner is the tie between a pull secret and its ServiceAccount.
//
// It owns how the tie is read: a pull secret has our label and the type of pull
// secrets, names its ServiceAccount in our annotation, and has an owner reference
// to it that says the same. It writes nothing.
//
// Its invariant: a Secret that lacks one of these is not ours.
package owner
