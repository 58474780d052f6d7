// Package controllers runs controllers in tests as a process would.
//
// It owns the manager that they run in and its end. It never decides what they
// may do: they have the rights of the connection that a test gives them, which
// is that of a user of our manifests wherever there is one.
//
// Its invariant: when the end was waited for, nothing of the controllers runs.
package controllers
