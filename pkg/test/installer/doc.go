// Package installer runs what init, join and unjoin do in tests: on a control plane, as one
// command, or cut off after every few writes.
package installer
