// Package checks makes the checks of a command one after the other, and prints
// their report: numbered lines, a stable schema for programs, and the
// exit code.
//
// A check that could not look, because the caller lacks a permission or the time
// was over, is Unknown and not Failed: what it asks about may be in order. The
// command does not end with success in either case.
package checks
