// Package await waits in tests until something is so.
//
// It owns the polling with a deadline, and what a test says when the deadline
// passes: what it waited for and what it saw last. It never decides how long is
// long enough; every package has a patience of its own.
//
// Its invariant: a wait ends with the test.
package await
