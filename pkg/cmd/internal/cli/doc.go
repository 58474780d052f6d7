// Package cli owns what every command has in common: the streams and the clock
// it was given, the name it was called by, how it reaches clusters, how it
// prints objects, reports progress, asks questions and fails.
//
// It knows no command and no OCM object. Its invariants: data goes to Out and
// talk to Err; a dry run is enforced in the HTTP transport, where no command
// can forget it; an error that reaches a user says what to do next and ends in
// one of the documented exit codes.
package cli
