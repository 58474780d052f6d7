// Package licences finds the licence texts of what is linked into a program: those of
// each module that a package came from, and of Go's standard library. A module whose
// licence it does not know, or which may not be passed on like this, is an error.
package licences
