// Package addons owns what several commands know about add-ons: the stable
// schema of an add-on and its registrations, what each of them waits for,
// listing them and completing their names.
//
// It prints nothing, reads no flag and writes nothing. Its invariant: everything that
// is not ready has a reason, and a sentence that says who has to act.
package addons
