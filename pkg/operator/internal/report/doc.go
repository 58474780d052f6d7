// Package report writes what an operator has to say into the status of its
// resource. Every condition belongs to one writer: an operator applies its own
// and leaves the ones of an agent alone. A report that says nothing new makes
// no write.
package report
