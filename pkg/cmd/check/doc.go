// Package check is the "check" command: its flags, and the report of the checks that
// pkg/diagnose makes of a hub, an agent, a managed cluster, a ManifestWork or the token
// exchange.
//
// It makes no check itself and repairs nothing.
package check
