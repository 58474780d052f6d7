// Package pause waits: for a time by a given clock, and no longer than its
// caller wants to live.
package pause
