// Package controllers runs controllers in tests as a process would.
//
// It owns the manager that they run in and its end. It never decides their permissions:
// they have the rights of the connection that a test gives them, of a user of our
// manifests wherever there is one.
//
// Its invariant: after its end, nothing of the controllers runs.
package controllers
