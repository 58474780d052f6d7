// Package rules reads the rules of the token exchange for commands, from the hub
// or from a file, and writes those on the hub.
//
// It owns how one change of an object is made: each command owns the fields that
// it writes, by server-side apply. Its invariants: nothing is written when nothing
// has changed, and a change that another client makes meanwhile is not lost.
package rules
