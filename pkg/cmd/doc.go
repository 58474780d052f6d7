// Package cmd builds the command tree and runs it. One package per command
// lies below it; a command is a thin adapter that turns flags into values,
// calls a library and prints the outcome.
//
// The tree is built for every call of New and keeps no package state.
package cmd
