// Package diagnosis has the scope with which tests of pkg/diagnose make checks: objects in
// memory, an API server that answers with its version only, and plain command lines. Checks
// against real API servers are in the scripts of cmd/kubectl-ocm.
package diagnosis
