// Package imageregistry runs a container registry and a client of it, which the first
// test that needs them builds from e2e/registry.
//
// It owns the registry's process, its certificate and the client's commands. The
// registry takes a token of a ServiceAccount for the password: the ServiceAccounts
// of a namespace may pull what is below the namespace's name, and its ServiceAccount
// "builder" may push there.
//
// Its invariant: a token reaches neither an argument nor a log.
package imageregistry
