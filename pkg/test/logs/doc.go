// Package logs gives tests what a component has logged, and whether a secret is
// in it. It owns the capture of a log and the forms that a secret can have
// there. It never decides what is a secret.
//
// Its invariant: a secret that is part of a captured entry, as it is or encoded
// as data of a Secret are, is found.
package logs
