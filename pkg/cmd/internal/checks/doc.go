// Package checks prints the report of a command's checks, which pkg/diagnose makes: numbered
// lines, or a stable schema for programs. It explains the errors of checks that could not
// look, and has the exit code.
//
// A check that could not look, because the caller lacks a permission or the time was over,
// may be in order. The command does not end with success in that case either.
package checks
