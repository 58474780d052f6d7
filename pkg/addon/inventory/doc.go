// Package inventory owns what a hub's objects say about its add-ons: the stable schema of
// an add-on and its registrations, who holds which credential until when, what each of
// them waits for, and what earlier drivers left.
//
// It only reads. Its invariant: everything that is not ready has a reason, and a sentence
// that says who has to act.
package inventory
